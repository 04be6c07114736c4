// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/job_samples.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "source/cause.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct fr_job_sample_texts {
	char value[FR_CAUSE_VALUE_SIZE], threshold[FR_CAUSE_VALUE_SIZE];
};

/* Returns the number NAME of CAUSE, or 0 if CAUSE has no such number. Times and values are raw JSON, because
   a double cannot hold all their digits. */
static uint64_t u64_of(const cJSON *cause, const char *name)
{
	const cJSON *o = cJSON_GetObjectItemCaseSensitive(cause, name);

	if (cJSON_IsRaw(o))
		return strtoull(o->valuestring, NULL, 10);
	return cJSON_IsNumber(o) && o->valuedouble > 0 && o->valuedouble < 0x1p64 ? (uint64_t)o->valuedouble
										  : 0;
}

static int int_of(const cJSON *cause, const char *name)
{
	return (int)FR_MIN(u64_of(cause, name), (uint64_t)INT_MAX);
}

/* Writes "12.3ms", without the blank of "12.3 ms": programs split the line of the sample at blanks. */
static const char *format_value(const char *unit, uint64_t value, char to[static FR_CAUSE_VALUE_SIZE])
{
	size_t n = 0;

	fr_cause_format_value(fr_cause_unit_parse(unit), value, to);
	for (size_t i = 0; to[i]; i++)
		if (to[i] != ' ')
			to[n++] = to[i];
	to[n] = '\0';
	return to;
}

static void add_sample(struct fr_job_samples *s, const cJSON *cause)
{
	struct fr_job_sample_texts *texts = &s->texts[s->n];
	struct fr_trigger_sample *sample = &s->v[s->n++];

	*sample = (struct fr_trigger_sample){
		.time_ns = u64_of(cause, "monotonic_ns"),
		.pid = int_of(cause, "pid"),
		.tid = int_of(cause, "tid"),
		.cpu = cJSON_HasObjectItem(cause, "cpu") ? int_of(cause, "cpu") : -1,
		.trigger = fr_json_text(cause, "trigger"),
		.reason = fr_json_text(cause, "reason"),
		.detail = fr_json_text(cause, "detail"),
		.unit = fr_json_text(cause, "unit"),
		.value = u64_of(cause, "value"),
		.threshold = u64_of(cause, "threshold"),
	};
	/* A cause can have a value without a threshold, for example if an application or a person made the
	   cause. */
	if (sample->value || sample->threshold)
		sample->value_text = format_value(sample->unit, sample->value, texts->value);
	if (sample->threshold)
		sample->threshold_text = format_value(sample->unit, sample->threshold, texts->threshold);
}

/* The JSON also has steps before the window. Makes no samples of them. */
static void add_steps(struct fr_job_samples *s, const cJSON *steps)
{
	const cJSON *step;

	cJSON_ArrayForEach (step, steps)
		if (!cJSON_HasObjectItem(step, "before_window"))
			add_sample(s, step);
}

int fr_job_samples_init(struct fr_job_samples *ret, const cJSON *meta)
{
	const cJSON *causes = cJSON_GetObjectItemCaseSensitive(meta, "causes"), *cause;
	const cJSON *steps = cJSON_GetObjectItemCaseSensitive(meta, "frequency_steps");
	const cJSON *switches = cJSON_GetObjectItemCaseSensitive(meta, "switches");
	const size_t n = (size_t)cJSON_GetArraySize(causes) + (size_t)cJSON_GetArraySize(steps) +
			 (size_t)cJSON_GetArraySize(switches);

	*ret = (struct fr_job_samples){
		.v = calloc(n + 1, sizeof(*ret->v)), .texts = calloc(n + 1, sizeof(*ret->texts))};
	if (!ret->v || !ret->texts) {
		fr_job_samples_deinit(ret);
		return -ENOMEM;
	}
	cJSON_ArrayForEach (cause, causes)
		if (u64_of(cause, "monotonic_ns"))
			add_sample(ret, cause);
	add_steps(ret, steps);
	add_steps(ret, switches);
	return 0;
}

void fr_job_samples_deinit(struct fr_job_samples *s)
{
	free(s->v);
	free(s->texts);
	*s = (struct fr_job_samples){0};
}
