// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/page_data.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define ENTRIES_MAX 60000u
#define BUCKETS_MIN 30u
#define WAITS_MAX (1u << 20)
#define CPUS_MAX 4096u

void fr_page_data_init(struct fr_page_data *x, uint64_t from_ns, uint64_t to_ns)
{
	*x = (struct fr_page_data){
		.from_ns = from_ns, .to_ns = FR_MAX(to_ns, from_ns + 1), .n_buckets = FR_PAGE_BUCKETS};
}

void fr_page_data_deinit(struct fr_page_data *x)
{
	FR_HASH_CLEAR(x->entries, free);
	fr_buf_deinit(&x->heat);
	fr_buf_deinit(&x->waits);
	fr_classes_deinit(&x->classes);
}

static uint32_t bucket_of(const struct fr_page_data *x, uint64_t time)
{
	const uint64_t at = FR_MIN(FR_MAX(time, x->from_ns), x->to_ns) - x->from_ns;
	const double part = (double)at / (double)(x->to_ns - x->from_ns);

	return FR_MIN((uint32_t)(part * FR_PAGE_BUCKETS), FR_PAGE_BUCKETS - 1);
}

static int add_entry(struct fr_page_entry **entries, const struct fr_page_key *key, uint64_t count, uint64_t weight)
{
	struct fr_page_entry *e = FR_HASH_FIND(*entries, key, *key);

	if (!e)
		e = FR_HASH_NEW(*entries, key, *key);
	if (!e)
		return -ENOMEM;
	e->count += count;
	e->weight += weight;
	return 0;
}

/* Returns the number of the source, or FR_PAGE_SOURCES_MAX if there are too many. */
static uint32_t find_source(struct fr_page_data *x, uint32_t event, bool idle)
{
	uint32_t i = 0;

	while (i < x->n_sources && (x->sources[i].event != event || x->sources[i].idle != idle))
		i++;
	if (i == x->n_sources && i < FR_PAGE_SOURCES_MAX)
		x->sources[x->n_sources++] = (struct fr_page_source){.event = event, .idle = idle};
	return i;
}

static int add_busy(struct fr_page_data *x, const struct fr_profile_sample *s, uint64_t ns)
{
	const size_t row = FR_PAGE_BUCKETS * sizeof(uint64_t);

	if (s->cpu >= CPUS_MAX)
		return 0;
	if (s->cpu >= x->n_cpus) {
		if (fr_buf_append_zero(&x->heat, (s->cpu + 1) * row - x->heat.len) < 0)
			return -ENOMEM;
		x->n_cpus = s->cpu + 1;
	}
	((uint64_t *)x->heat.data)[s->cpu * FR_PAGE_BUCKETS + bucket_of(x, s->time)] += ns;
	return 0;
}

/* Adds the wait to the lanes, unless it is for work or chosen by the program. */
static int add_wait(struct fr_page_data *x, const struct fr_recording_event *e, const struct fr_profile_sample *s,
	enum fr_wait kind)
{
	struct fr_page_wait w = {.to_ns = s->time, .task = s->task, .kind = kind};
	uint64_t blocked, runqueue;

	if (!fr_recorded_number(e, &s->recorded->sample, "blocked", &blocked) ||
		!fr_recorded_number(e, &s->recorded->sample, "runqueue", &runqueue) || blocked > s->time ||
		runqueue > s->time - blocked)
		return 0;
	for (int part = 0; part < 2; part++) {
		const uint64_t ns = part == 0 ? runqueue : blocked;

		w.kind = part == 0 ? FR_WAIT_CPU : kind;
		w.from_ns = w.to_ns - ns;
		if (ns > 0 && w.kind < FR_WAIT_SLEEP && x->waits.len / sizeof(w) < WAITS_MAX &&
			fr_buf_append(&x->waits, &w, sizeof(w)) < 0)
			return -ENOMEM;
		w.to_ns = w.from_ns;
	}
	return 0;
}

int fr_page_data_add(struct fr_page_data *x, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), s->event);
	const bool is_wait = strcmp(e->name, "flightrec:offcpu") == 0;
	struct fr_page_key key = {.bucket = bucket_of(x, s->time), .task = s->task, .stack = s->stack};
	enum fr_wait kind = FR_WAIT_IDLE;
	int r = 0;

	if (strcmp(e->name, "flightrec:trigger") == 0) {
		x->trigger_ns = x->trigger_ns ? x->trigger_ns : s->time;
		return 0;
	}
	if (is_wait) {
		r = fr_wait_kind(&x->classes, p, e, s, &kind);
		if (r == 0)
			r = add_wait(x, e, s, kind);
	} else if (fr_recording_event_is_cpu(e) && fr_profile_task(p, s->task)->tid != 0) {
		r = add_busy(x, s, fr_recording_event_ns(e, s->period));
	}
	key.source = find_source(x, s->event, is_wait && kind >= FR_WAIT_SLEEP);
	if (r < 0 || key.source == FR_PAGE_SOURCES_MAX)
		return r;
	x->sources[key.source].count++;
	return add_entry(&x->entries, &key, 1, s->period);
}

static int halve_buckets(struct fr_page_data *x)
{
	struct fr_page_entry *coarse = NULL;
	int r = 0;

	for (const struct fr_page_entry *e = x->entries; e && r == 0; e = e->hh.next) {
		struct fr_page_key key = e->key;

		key.bucket /= 2;
		r = add_entry(&coarse, &key, e->count, e->weight);
	}
	FR_HASH_CLEAR(x->entries, free);
	x->entries = coarse;
	x->n_buckets = (x->n_buckets + 1) / 2;
	return r;
}

static int compare_entries(const struct fr_page_entry *a, const struct fr_page_entry *b)
{
	return a->key.bucket < b->key.bucket ? -1 : a->key.bucket > b->key.bucket;
}

int fr_page_data_finish(struct fr_page_data *x)
{
	int r = 0;

	while (HASH_COUNT(x->entries) > ENTRIES_MAX && x->n_buckets > BUCKETS_MIN && r == 0)
		r = halve_buckets(x);
	if (r == 0 && x->entries)
		HASH_SORT(x->entries, compare_entries);
	return r;
}
