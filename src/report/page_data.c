// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/page_data.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define ENTRIES_MEMORY (1u << 19) /* while the recording is read */
#define STACKS_MAX 100000u
#define BUCKETS_GOOD 150u /* more are made coarser before threads are merged */
#define BUCKETS_MIN 30u
#define RARE_SAMPLES 10u /* a thread with so many samples is merged with others of its name */
#define WAITS_MAX (1u << 20)
#define OTHERS_MAX 5000u
#define MARKS_MAX 100u
#define CPUS_MAX 4096u
#define WAKER_IS_TASK 1 /* waker_context; in all other contexts, an interrupt was the waker */

/* By waker_context (src/bpf/sleep.h): who ended a wait that was not ended by a task. */
static const char *const contexts[] = {"(nobody)", NULL, "(softirq)", "(interrupt)", "(NMI)", "(unknown)"};
/* An open wait that nobody has ended. */
#define NOBODY_YET "(nobody yet)"

void fr_page_data_init(struct fr_page_data *x, uint64_t from_ns, uint64_t to_ns)
{
	*x = (struct fr_page_data){.from_ns = from_ns, .to_ns = FR_MAX(to_ns, from_ns)};
	x->bucket_ns = (x->to_ns - x->from_ns) / FR_PAGE_BUCKETS + 1;
	x->n_buckets = (uint32_t)((x->to_ns - x->from_ns) / x->bucket_ns) + 1;
}

void fr_page_data_deinit(struct fr_page_data *x)
{
	FR_HASH_CLEAR(x->entries, free);
	FR_HASH_CLEAR(x->by_name, free);
	free(x->merged);
	fr_stacks_deinit(&x->stacks);
	fr_buf_deinit(&x->of_stack);
	fr_buf_deinit(&x->others);
	fr_buf_deinit(&x->heat);
	fr_buf_deinit(&x->waits);
	fr_buf_deinit(&x->marks);
	fr_classes_deinit(&x->classes);
}

static uint32_t find_bucket(const struct fr_page_data *x, uint64_t time, uint64_t bucket_ns)
{
	return (uint32_t)((FR_MIN(FR_MAX(time, x->from_ns), x->to_ns) - x->from_ns) / bucket_ns);
}

static int add_entry(
	struct fr_page_entry **entries, const struct fr_page_key *key, uint64_t count, uint64_t weight)
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

/* Makes the entries again, with the buckets divided by DIVISOR, and with the tasks TASK_OF; NULL: the same
   tasks. */
static int make_coarse(struct fr_page_data *x, uint32_t divisor, const uint32_t *task_of)
{
	struct fr_page_entry *coarse = NULL;
	int r = 0;

	for (const struct fr_page_entry *e = x->entries; e && r == 0; e = e->hh.next) {
		struct fr_page_key key = e->key;

		key.bucket /= divisor;
		if (task_of)
			key.task = task_of[key.task];
		r = add_entry(&coarse, &key, e->count, e->weight);
	}
	FR_HASH_CLEAR(x->entries, free);
	x->entries = coarse;
	return r;
}

static int halve_buckets(struct fr_page_data *x)
{
	x->bucket_ns *= 2;
	x->n_buckets = (x->n_buckets + 1) / 2;
	return make_coarse(x, 2, NULL);
}

/* Adds the entry of a sample. If there are very many entries, fr_page_data_finish() would make the buckets
   coarser anyway. If they cannot be coarser, new stacks are left out. */
static int add_sample(struct fr_page_data *x, struct fr_page_key *key, uint64_t period)
{
	int r = 0;

	while (r == 0 && HASH_COUNT(x->entries) >= ENTRIES_MEMORY && x->n_buckets > BUCKETS_MIN) {
		r = halve_buckets(x);
		key->bucket /= 2;
	}
	if (HASH_COUNT(x->entries) >= ENTRIES_MEMORY && key->stack != FR_STACK_NONE &&
		!FR_HASH_FIND(x->entries, key, *key)) {
		key->stack = FR_STACK_NONE;
		x->without_stack++;
	}
	return r < 0 ? r : add_entry(&x->entries, key, 1, period);
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

/* --- stacks --- */

/* Adds the frames of a stack of the profile. *RET is FR_STACK_NONE if there are already too many. */
static int push_stack(struct fr_page_data *x, const struct fr_profile *p, uint32_t stack, uint32_t *ret)
{
	const struct fr_frames *frames = fr_profile_frames(p);
	uint32_t list[FR_STACK_DEPTH_MAX];
	size_t n = fr_stacks_frames(fr_profile_stacks(p), stack, list, FR_STACK_DEPTH_MAX);

	*ret = FR_STACK_NONE;
	if (x->stacks.n + n > STACKS_MAX)
		return 0;
	while (n > 0) {
		*ret = fr_stacks_push(&x->stacks, *ret, fr_frames_get(frames, list[--n])->same);
		if (*ret == FR_STACK_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int find_stack(struct fr_page_data *x, const struct fr_profile *p, uint32_t stack, uint32_t *ret)
{
	const size_t have = x->of_stack.len / sizeof(*ret);
	uint32_t *known;
	int r = 0;

	*ret = FR_STACK_NONE;
	if (stack == FR_STACK_NONE)
		return 0;
	if (stack >= have &&
		fr_buf_append_zero(&x->of_stack, (fr_profile_stacks(p)->n - have) * sizeof(*ret)) < 0)
		return -ENOMEM;
	known = (uint32_t *)x->of_stack.data + stack;
	if (*known == 0) {
		r = push_stack(x, p, stack, ret);
		*known = *ret + 1; /* 0 for FR_STACK_NONE */
	}
	*ret = *known - 1;
	x->without_stack += *ret == FR_STACK_NONE;
	return r;
}

/* --- other tasks --- */

/* Returns the number of a name, which has LEN bytes: at least 1; or 0 if there is no memory. */
static uint32_t find_other(struct fr_page_data *x, const char *name, size_t len)
{
	struct fr_page_name key = {.number = 0}, *n;

	if (HASH_COUNT(x->by_name) >= OTHERS_MAX) {
		name = "(others)";
		len = strlen(name);
	}
	memcpy(key.key, name, FR_MIN(len, sizeof(key.key)));
	HASH_FIND(hh, x->by_name, key.key, sizeof(key.key), n);
	if (n)
		return n->number;
	n = malloc(sizeof(*n));
	if (!n)
		return 0;
	*n = key;
	n->number = (uint32_t)(x->others.len / sizeof(void *)) + 1;
	if (fr_buf_append(&x->others, &n, sizeof(void *)) < 0 || !FR_HASH_ADD(x->by_name, key, n)) {
		free(n);
		return 0;
	}
	return n->number;
}

const char *fr_page_other(const struct fr_page_data *x, uint32_t other, size_t *ret_len)
{
	const struct fr_page_name *n =
		((const struct fr_page_name *const *)(const void *)x->others.data)[other - 1];

	*ret_len = strnlen(n->key, sizeof(n->key));
	return n->key;
}

/* Finds who ended the wait, or who was woken. Sets *RET_TID to the thread that ended the wait; 0: it is
   not known. */
static int find_other_task(struct fr_page_data *x, const struct fr_recording_event *e,
	const struct fr_profile_sample *s, uint32_t *ret, uint32_t *ret_tid)
{
	const struct fr_sample_fields *fields = &s->recorded->sample;
	const bool is_wait = fr_page_is_wait(e);
	uint64_t context = WAKER_IS_TASK, tid = 0;
	size_t len;
	const char *name = fr_recorded_text(e, fields, is_wait ? "waker_comm" : "woken_comm", &len);

	if (is_wait && (!fr_recorded_number(e, fields, "waker_context", &context) ||
			       !fr_recorded_number(e, fields, "waker_tid", &tid)))
		context = FR_ARRAY_SIZE(contexts) - 1;
	if (context != WAKER_IS_TASK) {
		name = context == 0 && fr_page_is_open_wait(e)
			       ? NOBODY_YET
			       : contexts[FR_MIN(context, FR_ARRAY_SIZE(contexts) - 1)];
		len = strlen(name);
	}
	*ret_tid = context == WAKER_IS_TASK && (int64_t)tid > 0 ? (uint32_t)tid : 0;
	*ret = find_other(x, name, len);
	return *ret ? 0 : -ENOMEM;
}

/* --- samples --- */

/* Adds NS of CPU time before the time TO_NS to a row of the heat map, which always has the finest buckets. A
   sample that counted only in its own bucket would make stripes, because the number of samples in a short
   bucket changes by one. */
static void spread_busy(const struct fr_page_data *x, uint64_t *row, uint64_t to_ns, uint64_t ns)
{
	const uint64_t bucket_ns = (x->to_ns - x->from_ns) / FR_PAGE_BUCKETS + 1;
	uint64_t from_ns = to_ns - FR_MIN(ns, to_ns);
	uint32_t i = find_bucket(x, from_ns, bucket_ns);

	for (const uint32_t last = find_bucket(x, to_ns, bucket_ns); i <= last; i++) {
		const uint64_t end_ns = i < last ? x->from_ns + (i + 1) * bucket_ns : to_ns;

		from_ns = FR_MAX(from_ns, x->from_ns + i * bucket_ns);
		row[i] += end_ns - FR_MIN(from_ns, end_ns);
	}
}

static int add_busy(struct fr_page_data *x, const struct fr_profile_sample *s, uint64_t ns)
{
	const size_t row = FR_PAGE_BUCKETS * sizeof(uint64_t);

	/* Two events of CPU time would make a CPU more than busy. */
	x->cpu_event = x->cpu_event ? x->cpu_event : s->event + 1;
	if (s->cpu >= CPUS_MAX || x->cpu_event != s->event + 1)
		return 0;
	if (s->cpu >= x->n_cpus) {
		x->n_cpus = FR_MAX(s->cpu + 1, FR_MIN(x->cpus_min, CPUS_MAX));
		if (fr_buf_append_zero(&x->heat, x->n_cpus * row - x->heat.len) < 0)
			return -ENOMEM;
	}
	spread_busy(x, (uint64_t *)x->heat.data + (size_t)s->cpu * FR_PAGE_BUCKETS, s->time, ns);
	return 0;
}

/* Adds the wait to the lanes. A wait for work, or a sleep, is added only if it has not ended: the stack of an
   open wait has no functions of the program, so it can be a lock. */
static int add_wait(struct fr_page_data *x, const struct fr_recording_event *e,
	const struct fr_profile_sample *s, const struct fr_page_wait *wait)
{
	struct fr_page_wait w = *wait;
	uint64_t blocked, runqueue;

	w.to_ns = s->time;
	if (!fr_recorded_number(e, &s->recorded->sample, "blocked", &blocked) ||
		!fr_recorded_number(e, &s->recorded->sample, "runqueue", &runqueue) || blocked > s->time ||
		runqueue > s->time - blocked)
		return 0;
	for (int part = 0; part < 2; part++) {
		const uint64_t ns = part == 0 ? runqueue : blocked;

		w.kind = part == 0 ? FR_WAIT_CPU : wait->kind;
		w.from_ns = w.to_ns - ns;
		w.is_open = wait->is_open && w.to_ns == s->time;
		if (ns > 0 && (w.kind < FR_WAIT_SLEEP || w.is_open) && w.to_ns > x->from_ns) {
			if (x->waits.len / sizeof(w) >= WAITS_MAX)
				x->waits_left_out++;
			else if (fr_buf_append(&x->waits, &w, sizeof(w)) < 0)
				return -ENOMEM;
		}
		w.to_ns = w.from_ns;
	}
	return 0;
}

int fr_page_data_add(struct fr_page_data *x, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), s->event);
	struct fr_page_wait w = {.task = s->task, .kind = FR_WAIT_CPU, .is_open = fr_page_is_open_wait(e)};
	struct fr_page_key key;
	int r;

	if (strcmp(e->name, "flightrec:trigger") == 0)
		return x->marks.len / sizeof(s->time) < MARKS_MAX ? fr_buf_append_u64(&x->marks, s->time) : 0;
	r = find_stack(x, p, s->stack, &w.stack);
	if (r == 0 && fr_page_is_wait(e))
		r = fr_wait_kind(&x->classes, p, e, s, &w.kind);
	if (r == 0 && (fr_page_is_wait(e) || fr_page_is_waking(e)))
		r = find_other_task(x, e, s, &w.other, &w.waker_tid);
	if (r == 0 && fr_page_is_wait(e))
		r = add_wait(x, e, s, &w);
	if (r == 0 && fr_recording_event_is_cpu(e) && fr_profile_task(p, s->task)->tid != 0)
		r = add_busy(x, s, fr_recording_event_ns(e, s->period));
	memset(&key, 0, sizeof(key)); /* it is compared as bytes */
	key.bucket = find_bucket(x, s->time, x->bucket_ns);
	key.source = find_source(x, s->event, w.kind >= FR_WAIT_SLEEP);
	key.task = s->task;
	key.stack = w.stack;
	key.other = w.other;
	x->left_out += key.source == FR_PAGE_SOURCES_MAX;
	return r < 0 || key.source == FR_PAGE_SOURCES_MAX ? r : add_sample(x, &key, s->period);
}

/* --- the end --- */

static int limit_entries(struct fr_page_data *x, size_t entries_max, uint32_t buckets_min)
{
	int r = 0;

	while (HASH_COUNT(x->entries) > entries_max && x->n_buckets > buckets_min && r == 0)
		r = halve_buckets(x);
	return r;
}

struct named_task {
	const char *comm; /* equal names are one text of the profile */
	uint32_t task;
	uint64_t samples;
};

static int compare_named_tasks(const void *x, const void *y)
{
	const struct named_task *a = x, *b = y;

	if (a->comm != b->comm)
		return (uintptr_t)a->comm < (uintptr_t)b->comm ? -1 : 1;
	return a->task < b->task ? -1 : a->task > b->task;
}

/* Makes one task of the threads that have the same name and few samples. Thousands of short processes, such
   as those of a build, have no use as single ones, and they are many entries, however coarse the buckets
   are. */
static int merge_tasks(struct fr_page_data *x, const struct fr_profile *p, const uint32_t *lane_of)
{
	const size_t n = fr_profile_n_tasks(p);
	_cleanup_free_ struct named_task *tasks = calloc(n + 1, sizeof(*tasks));
	_cleanup_free_ uint32_t *task_of = calloc(n + 1, sizeof(*task_of));
	const struct named_task *first = NULL;

	x->merged = calloc(n + 1, sizeof(*x->merged));
	if (!tasks || !task_of || !x->merged)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		tasks[i] = (struct named_task){.comm = fr_profile_task(p, i)->comm, .task = i};
	for (const struct fr_page_entry *e = x->entries; e; e = e->hh.next)
		tasks[e->key.task].samples += e->count;
	qsort(tasks, n, sizeof(*tasks), compare_named_tasks);
	for (size_t i = 0; i < n; i++) {
		const bool is_rare =
			tasks[i].samples > 0 && tasks[i].samples <= RARE_SAMPLES && !lane_of[tasks[i].task];
		const bool is_same = first && first->comm == tasks[i].comm && is_rare;

		task_of[tasks[i].task] = is_same ? first->task : tasks[i].task;
		if (is_same)
			x->merged[first->task] = true;
		else if (is_rare)
			first = &tasks[i];
	}
	return make_coarse(x, 1, task_of);
}

static int compare_entries(const struct fr_page_entry *a, const struct fr_page_entry *b)
{
	return a->key.bucket < b->key.bucket ? -1 : a->key.bucket > b->key.bucket;
}

int fr_page_data_finish(
	struct fr_page_data *x, const struct fr_profile *p, size_t entries_max, const uint32_t *lane_of)
{
	int r = limit_entries(x, entries_max, BUCKETS_GOOD);

	if (r == 0 && HASH_COUNT(x->entries) > entries_max)
		r = merge_tasks(x, p, lane_of);
	if (r == 0)
		r = limit_entries(x, entries_max, BUCKETS_MIN);
	if (r == 0 && x->entries)
		HASH_SORT(x->entries, compare_entries);
	return r;
}
