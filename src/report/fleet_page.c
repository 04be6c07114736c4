// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/fleet_page.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 600u
#define BUCKETS_OF_MANY 300u /* so that the page stays small */
#define MANY 100u

int fr_fleet_page_init(struct fr_fleet_page *x, const struct fr_fleet_folder *folder)
{
	*x = (struct fr_fleet_page){.folder = folder};
	x->n_buckets = folder->n_dumps > MANY ? BUCKETS_OF_MANY : BUCKETS;
	x->bucket_ns = (folder->to_ns - folder->from_ns) / x->n_buckets + 1;
	x->lanes = calloc(folder->n, sizeof(*x->lanes));
	return x->lanes ? 0 : -ENOMEM;
}

static uint32_t find_bucket(const struct fr_fleet_page *x, uint64_t ns)
{
	const uint64_t i = ns / x->bucket_ns;

	return i < x->n_buckets ? (uint32_t)i : x->n_buckets - 1;
}

/* Adds the time from FROM_NS to TO_NS, which are after the begin of the page. */
static void add_span(const struct fr_fleet_page *x, uint64_t *row, uint64_t from_ns, uint64_t to_ns)
{
	const uint32_t last = find_bucket(x, to_ns);

	for (uint32_t i = find_bucket(x, from_ns); i <= last; i++) {
		const uint64_t begin = FR_MAX(from_ns, i * x->bucket_ns),
			       end = i < last ? (i + 1) * x->bucket_ns : to_ns;

		row[i] += end - FR_MIN(begin, end);
	}
}

/* Returns a time of the clock of the machine as the time after the begin of the page; 0 if it is earlier. */
static uint64_t to_page(const struct fr_fleet_page *x, size_t machine, uint64_t monotonic_ns)
{
	uint64_t fleet;

	if (__builtin_add_overflow(monotonic_ns, x->folder->v[machine].clock.offset_ns, &fleet))
		return 0;
	return fleet > x->folder->from_ns ? fleet - x->folder->from_ns : 0;
}

/* Adds the span that ends at TO_NS, on the clock of the machine. */
static void add_before(
	const struct fr_fleet_page *x, size_t machine, uint64_t *row, uint64_t to_ns, uint64_t ns)
{
	add_span(x, row, to_page(x, machine, to_ns - FR_MIN(ns, to_ns)), to_page(x, machine, to_ns));
}

static int make_rows(struct fr_fleet_page *x, struct fr_fleet_lane *lane)
{
	if (lane->busy_ns)
		return 0;
	lane->busy_ns = calloc(2 * (size_t)x->n_buckets, sizeof(*lane->busy_ns));
	lane->waiting_ns = lane->busy_ns ? lane->busy_ns + x->n_buckets : NULL;
	return lane->busy_ns ? 0 : -ENOMEM;
}

static int add_mark(
	struct fr_fleet_page *x, size_t machine, uint64_t monotonic_ns, const char *text, size_t len)
{
	struct fr_fleet_lane *lane = &x->lanes[machine];
	struct fr_fleet_mark *v;

	if (lane->n_marks == FR_FLEET_MARKS_MAX)
		return 0;
	v = reallocarray(lane->marks, lane->n_marks + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	lane->marks = v;
	v += lane->n_marks++;
	v->ns = to_page(x, machine, monotonic_ns);
	snprintf(v->text, sizeof(v->text), "%.*s", (int)FR_MIN(len, sizeof(v->text)), len ? text : "trigger");
	return 0;
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	struct fr_fleet_page *x = ctx;
	struct fr_fleet_lane *lane = &x->lanes[x->current];
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), s->event);
	size_t len;
	int r = make_rows(x, lane);

	if (r < 0)
		return r;
	if (strcmp(e->name, "flightrec:trigger") == 0) {
		const char *text = fr_recorded_text(e, &s->recorded->sample, "trigger", &len);

		return add_mark(x, x->current, s->time, text, len);
	}
	if (!fr_recording_event_is_cpu(e) || fr_profile_task(p, s->task)->tid == 0)
		return 0;
	/* Two events of CPU time would make a CPU more than busy. */
	lane->event = lane->event ? lane->event : s->event + 1;
	if (lane->event == s->event + 1)
		add_before(x, x->current, lane->busy_ns, s->time, fr_recording_event_ns(e, s->period));
	return 0;
}

struct fr_view fr_fleet_page_view(struct fr_fleet_page *x, size_t machine)
{
	x->current = machine;
	return (struct fr_view){.sample = add_sample, .ctx = x};
}

static void add_waits(struct fr_fleet_page *x, size_t machine, const struct fr_facts *f)
{
	const struct fr_wait_fact *v = (const void *)f->waits.data;
	uint64_t *row = x->lanes[machine].waiting_ns;

	for (size_t i = 0; i < f->waits.len / sizeof(*v); i++) {
		add_before(x, machine, row, v[i].end_ns, v[i].runqueue_ns);
		if (v[i].kind < FR_WAIT_SLEEP)
			add_before(x, machine, row, v[i].end_ns - FR_MIN(v[i].runqueue_ns, v[i].end_ns),
				v[i].blocked_ns);
	}
}

/* The triggers that the JSON of the dump has, if the dump has no samples of them. */
static int add_causes(struct fr_fleet_page *x, size_t machine, const cJSON *meta)
{
	const cJSON *causes = cJSON_GetObjectItemCaseSensitive(meta, "causes"), *cause;
	int r = 0;

	if (x->lanes[machine].n_marks > 0)
		return 0;
	cJSON_ArrayForEach (cause, causes) {
		const char *text = fr_json_text(cause, "trigger");
		const double ns =
			cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(cause, "monotonic_ns"));

		if (r == 0 && ns > 0 && ns < 1e18)
			r = add_mark(x, machine, (uint64_t)ns, text, strlen(text));
	}
	return r;
}

int fr_fleet_page_add(struct fr_fleet_page *x, size_t machine, const struct fr_explanation *e)
{
	struct fr_fleet_lane *lane = &x->lanes[machine];
	int r = make_rows(x, lane);

	if (r < 0)
		return r;
	lane->n_cpus = e->facts.n_cpus;
	lane->incident_ns = to_page(x, machine, e->facts.incident_ns);
	add_waits(x, machine, &e->facts);
	return add_causes(x, machine, e->meta);
}

void fr_fleet_page_deinit(struct fr_fleet_page *x)
{
	for (size_t i = 0; x->lanes && i < x->folder->n; i++) {
		free(x->lanes[i].busy_ns);
		free(x->lanes[i].marks);
	}
	free(x->lanes);
	x->lanes = NULL;
}
