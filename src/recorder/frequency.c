// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/frequency.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "capture/capture.h"

#include <inttypes.h>
#include <string.h>

static uint64_t hz(const struct fr_frequency *f, unsigned divisor)
{
	return FR_MAX(f->full_hz / divisor, (uint64_t)1);
}

static void remember(struct fr_frequency *f, const struct fr_frequency_step *step)
{
	fr_lock(&f->lock);
	if (f->n == FR_FREQUENCY_STEPS)
		memmove(f->steps, f->steps + 1, --f->n * sizeof(*f->steps));
	f->steps[f->n++] = *step;
	fr_unlock(&f->lock);
}

/* Returns whether CAPTURE has something that a step changes. */
static bool has_steps(const struct fr_capture *capture)
{
	return fr_capture_frequency(capture) || fr_capture_off_cpu_threshold(capture);
}

/* Writes what the step S changes: "sampling frequency 99 Hz to 49 Hz, threshold of offcpu 1ms to 2ms". */
static void format_change(
	const struct fr_frequency *f, const struct fr_frequency_step *s, char *ret, size_t size)
{
	char from[FR_UNIT_SIZE], to[FR_UNIT_SIZE];
	int n = 0;

	if (f->full_hz)
		n = snprintf(ret, size, "sampling frequency %" PRIu64 " Hz to %" PRIu64 " Hz%s",
			hz(f, s->from), hz(f, s->to), f->full_threshold_ns ? ", " : "");
	if (f->full_threshold_ns)
		snprintf(ret + n, size - (size_t)n, "threshold of offcpu %s to %s",
			fr_duration_format(f->full_threshold_ns * s->from, from),
			fr_duration_format(f->full_threshold_ns * s->to, to));
}

static void describe(const struct fr_frequency *f, const struct fr_frequency_step *s, char *to, size_t size)
{
	char why[128] = "there is no CPUBudget= any more", change[192] = "";

	if (s->ppm)
		snprintf(why, sizeof(why), "the recorder took %.2f %% of a CPU, CPUBudget=%g%%",
			(double)s->used_ppm / FR_PPM_PER_PERCENT, (double)s->ppm / FR_PPM_PER_PERCENT);
	format_change(f, s, change, sizeof(change));
	snprintf(to, size, "%s: %s", change, why);
}

static void log_step(const struct fr_frequency *f, const struct fr_frequency_step *s)
{
	char text[384], from[24], to[24];
	const struct fr_log_field fields[] = {{"FLIGHTREC_FROM_HZ", from}, {"FLIGHTREC_TO_HZ", to}};

	snprintf(from, sizeof(from), "%" PRIu64, hz(f, s->from));
	snprintf(to, sizeof(to), "%" PRIu64, hz(f, s->to));
	describe(f, s, text, sizeof(text));
	fr_log_struct(s->to > s->from ? LOG_NOTICE : LOG_INFO, FR_MSG_FREQUENCY, fields,
		FR_ARRAY_SIZE(fields), "%s", text);
}

/* Sets the frequencies of CAPTURE with the budget's divisor. On an error, sets the budget's divisor back to
   the previous divisor, `from`. */
static void make_step(struct fr_frequency *f, struct fr_capture *capture, unsigned from)
{
	const struct fr_frequency_step s = {
		fr_monotonic_ns(), from, f->budget.divisor, f->budget.used_ppm, f->budget.ppm};
	struct fr_diag diag = {0};
	int r = fr_capture_set_divisor(capture, s.to, &diag);

	if (r < 0) {
		f->budget.divisor = from;
		fr_log_diag(LOG_WARNING, &diag, r);
		return;
	}
	f->down += s.to > s.from;
	f->up += s.to < s.from;
	remember(f, &s);
	log_step(f, &s);
}

static void log_exhausted(const struct fr_frequency *f)
{
	fr_log_struct(LOG_WARNING, FR_MSG_OVER_BUDGET, NULL, 0,
		"the recorder took %.2f %% of a CPU, CPUBudget=%g%%, and %s\n  record fewer events, or with "
		"a filter or a longer period",
		(double)f->budget.used_ppm / FR_PPM_PER_PERCENT, (double)f->budget.ppm / FR_PPM_PER_PERCENT,
		f->full_hz || f->full_threshold_ns
			? "its frequencies have reached their lowest values"
			: "events by period and tracepoints cannot be stepped down");
}

void fr_frequency_init(struct fr_frequency *f, const struct fr_capture *capture, uint64_t ppm)
{
	*f = (struct fr_frequency){.full_hz = fr_capture_frequency(capture),
		.full_threshold_ns = fr_capture_off_cpu_threshold(capture)};
	fr_lock_init(&f->lock);
	fr_budget_init(&f->budget, ppm, has_steps(capture) ? FR_BUDGET_DIVISOR_MAX : 1);
}

void fr_frequency_deinit(struct fr_frequency *f)
{
	fr_lock_deinit(&f->lock);
}

int fr_frequency_prepare(const struct fr_frequency *f, struct fr_capture *capture, struct fr_diag *d)
{
	const unsigned divisor = f->budget.divisor;

	return divisor > 1 && has_steps(capture) ? fr_capture_set_divisor(capture, divisor, d) : 0;
}

void fr_frequency_set_capture(struct fr_frequency *f, const struct fr_capture *capture)
{
	fr_lock(&f->lock);
	f->full_hz = fr_capture_frequency(capture);
	f->full_threshold_ns = fr_capture_off_cpu_threshold(capture);
	fr_unlock(&f->lock);
	f->budget.divisor_max = has_steps(capture) ? FR_BUDGET_DIVISOR_MAX : 1;
}

void fr_frequency_tick(struct fr_frequency *f, struct fr_capture *capture)
{
	const uint64_t now_ns = fr_monotonic_ns(), cpu_ns = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	const unsigned from = f->budget.divisor;

	fr_thread_assert(FR_THREAD_MAIN);
	if (fr_budget_tick(&f->budget, now_ns, cpu_ns) == FR_BUDGET_EXHAUSTED)
		log_exhausted(f);
	else if (f->budget.divisor != from)
		make_step(f, capture, from);
}

void fr_frequency_set_budget(struct fr_frequency *f, struct fr_capture *capture, uint64_t ppm)
{
	const unsigned from = f->budget.divisor;

	if (fr_budget_change(&f->budget, ppm) == FR_BUDGET_UP)
		make_step(f, capture, from);
}

uint64_t fr_frequency_hz(const struct fr_frequency *f)
{
	return f->full_hz ? hz(f, f->budget.divisor) : 0;
}

uint64_t fr_frequency_threshold_ns(const struct fr_frequency *f)
{
	return f->full_threshold_ns * f->budget.divisor;
}

/* Returns the JSON of a step. The JSON has the members of a cause, because a dump describes each step with a
   trigger sample, like a cause. */
static cJSON *step_json(const struct fr_frequency *f, const struct fr_frequency_step *s, bool before)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	cJSON *o = cJSON_CreateObject();
	char text[384];

	describe(f, s, text, sizeof(text));
	cJSON_AddStringToObject(o, "trigger", "cpu-budget");
	cJSON_AddStringToObject(o, "reason", text);
	fr_json_add_time(o, "time", fr_clock_to_realtime(&pair, s->time_ns));
	fr_json_add_u64(o, "monotonic_ns", s->time_ns);
	fr_json_add_u64(o, "from_hz", hz(f, s->from));
	fr_json_add_u64(o, "to_hz", hz(f, s->to));
	if (f->full_threshold_ns) {
		fr_json_add_u64(o, "from_off_cpu_threshold_ns", f->full_threshold_ns * s->from);
		fr_json_add_u64(o, "to_off_cpu_threshold_ns", f->full_threshold_ns * s->to);
	}
	if (before)
		cJSON_AddTrueToObject(o, "before_window");
	return o;
}

void fr_frequency_add_steps(struct fr_frequency *f, uint64_t from_ns, uint64_t to_ns, cJSON *meta)
{
	cJSON *array = cJSON_CreateArray();

	fr_lock(&f->lock);
	for (size_t i = 0; i < f->n; i++) {
		const struct fr_frequency_step *s = &f->steps[i];
		const bool before = s->time_ns < from_ns;
		const bool last_before = before && (i + 1 == f->n || s[1].time_ns >= from_ns);

		if (s->time_ns <= to_ns && (!before || (last_before && s->to > 1)))
			cJSON_AddItemToArray(array, step_json(f, s, before));
	}
	fr_unlock(&f->lock);
	if (cJSON_GetArraySize(array) == 0 || !cJSON_AddItemToObject(meta, "frequency_steps", array))
		cJSON_Delete(array);
}
