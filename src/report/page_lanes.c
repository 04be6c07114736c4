// SPDX-License-Identifier: GPL-2.0-or-later

/* The lanes of the page: for the threads with the most CPU time and waits, when each ran, and what it waited
   for. */

#include "base/cleanup.h"
#include "base/clock.h"
#include "report/page_json.h"
#include "report/page_out.h"
#include "report/protobuf.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LANES_MAX 60u
#define FINDINGS_SHOWN 3
#define WAITS_SHOWN 6000u /* in all lanes together: the longest ones */

/* The kinds of waits that lanes show. Those for work, and sleeps, are shown only if they are open. */
#define KIND_OPEN FR_WAIT_SLEEP
static const char *const kinds[] = {[FR_WAIT_CPU] = "CPU",
	[FR_WAIT_LOCK] = "lock",
	[FR_WAIT_DISK] = "disk",
	[FR_WAIT_RECLAIM] = "memory",
	[FR_WAIT_SERVER] = "file server",
	[FR_WAIT_PEER] = "slow reader",
	[FR_WAIT_UNKNOWN] = "uninterruptible",
	[KIND_OPEN] = "work, a sleep or a lock"};

struct lane {
	uint32_t task;
	double score; /* ns: CPU time, and waits */
};

/* On a busy machine, all threads wait for a CPU. Waits for something else are what to look at. */
#define CPU_WAIT_WEIGHT 0.25
#define FIRST_SCORE 1e18 /* before all others */

static int compare_lanes(const void *x, const void *y)
{
	const struct lane *a = x, *b = y;

	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->task < b->task ? -1 : a->task > b->task;
}

/* Returns the CPU time that the samples of E stand for, in ns; 0 if they are not of the event of the heat
 * map. */
static double busy_ns(const struct fr_page *x, const struct fr_page_entry *e)
{
	const struct fr_recording *recording = fr_profile_recording(x->profile);
	const uint32_t event = x->data->sources[e->key.source].event;
	const struct fr_recording_event *of = fr_recording_event(recording, event);

	if (x->data->cpu_event != event + 1 || fr_profile_task(x->profile, e->key.task)->tid == 0)
		return 0;
	return fr_recording_event_is_time(of) ? (double)e->weight
					      : (double)(e->count * fr_recording_event_ns(of, 0));
}

/* Adds the CPU time of E to the buckets of its thread, in ns. A sample stands for the time before it, so what
   is more than the length of its bucket goes to the buckets before. */
static void add_run(const struct fr_page *x, const struct fr_page_entry *e, double *runs)
{
	const double bucket_ns = (double)x->data->bucket_ns;
	double left = busy_ns(x, e), sample_ns = left / (double)e->count;

	for (uint32_t i = e->key.bucket + 1; i-- > 0 && left > 0; sample_ns -= bucket_ns) {
		const double ns = FR_MIN(left, bucket_ns - runs[i]);

		runs[i] += ns;
		left -= ns;
		if (sample_ns <= 0)
			break;
	}
}

/* Returns whether the thread, with its last name, is the cause of one of the first findings, which the
   explanation shows. */
static bool is_cause(const struct fr_page *x, uint32_t task)
{
	const struct fr_findings *found = &x->explanation->findings;
	const struct fr_task *t = fr_profile_task(x->profile, task);

	for (size_t i = 0; i < FR_MIN(found->n, (size_t)FINDINGS_SHOWN); i++)
		if (found->v[i].tid == t->tid && found->v[i].pid == t->pid)
			return t == fr_profile_find_thread(x->profile, t->pid, t->tid);
	return false;
}

static struct lane *make_lanes(const struct fr_page *x)
{
	const struct fr_page_wait *waits = (const void *)x->data->waits.data;
	const size_t n = fr_profile_n_tasks(x->profile);
	struct lane *lanes = calloc(n + 1, sizeof(*lanes));

	for (uint32_t i = 0; lanes && i < n; i++)
		lanes[i].task = i;
	for (const struct fr_page_entry *e = x->data->entries; lanes && e; e = e->hh.next)
		lanes[e->key.task].score += busy_ns(x, e);
	for (size_t i = 0; lanes && i < x->data->waits.len / sizeof(*waits); i++)
		if (waits[i].kind < KIND_OPEN)
			lanes[waits[i].task].score +=
				(double)(waits[i].to_ns - FR_MAX(waits[i].from_ns, x->data->from_ns)) *
				(waits[i].kind == FR_WAIT_CPU ? CPU_WAIT_WEIGHT : 1);
	for (uint32_t i = 0; lanes && i < n; i++)
		if (is_cause(x, i))
			lanes[i].score += FIRST_SCORE;
	if (lanes)
		qsort(lanes, n, sizeof(*lanes), compare_lanes);
	return lanes;
}

static double weight_of(const struct fr_page_wait *w)
{
	return (double)(w->to_ns - w->from_ns) * (w->kind == FR_WAIT_CPU ? CPU_WAIT_WEIGHT : 1);
}

/* The longest ones first. */
static int compare_waits(const void *x, const void *y)
{
	const struct fr_page_wait *a = *(const struct fr_page_wait *const *)x,
				  *b = *(const struct fr_page_wait *const *)y;

	if (weight_of(a) != weight_of(b))
		return weight_of(a) > weight_of(b) ? -1 : 1;
	return a->to_ns < b->to_ns ? -1 : a->to_ns > b->to_ns;
}

static void put_wait(
	struct fr_protobuf *b, const struct fr_page_data *d, const struct fr_page_wait *w, uint32_t lane)
{
	const uint64_t from = FR_MAX(w->from_ns, d->from_ns);
	const uint64_t numbers[] = {lane, (from - d->from_ns) / FR_NSEC_PER_USEC,
		(w->to_ns - from) / FR_NSEC_PER_USEC, 2u * FR_MIN(w->kind, KIND_OPEN) + w->is_open, w->other,
		w->waker_tid, w->stack + 1u};

	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++)
		fr_pb_varint(b, numbers[i]);
}

static int put_waits(const struct fr_page *x)
{
	const struct fr_page_wait *waits = (const void *)x->data->waits.data;
	const size_t n = x->data->waits.len / sizeof(*waits);
	_cleanup_free_ const struct fr_page_wait **list = reallocarray(NULL, n + 1, sizeof(void *));
	_cleanup_pb_ struct fr_protobuf b = {0};
	size_t shown = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (x->lane_of[waits[i].task])
			list[shown++] = &waits[i];
	qsort(list, shown, sizeof(void *), compare_waits);
	for (size_t i = 0; i < FR_MIN(shown, (size_t)WAITS_SHOWN); i++)
		put_wait(&b, x->data, list[i], x->lane_of[list[i]->task] - 1);
	fprintf(x->out, "],\n\"waits_left_out\":%" PRIu64 ",\"waits\":\"",
		x->data->waits_left_out + (shown > WAITS_SHOWN ? shown - WAITS_SHOWN : 0));
	fr_page_base64(x->out, b.buf.data, b.buf.len);
	fputc('"', x->out);
	return b.failed ? -ENOMEM : 0;
}

/* Computes how long the thread of each lane ran in each bucket. */
static int fill_runs(struct fr_page *x, const uint32_t *lane_of)
{
	_cleanup_free_ double *runs = calloc((size_t)LANES_MAX * FR_PAGE_BUCKETS, sizeof(*runs));

	if (!runs)
		return -ENOMEM;
	for (const struct fr_page_entry *e = x->data->entries; e; e = e->hh.next)
		if (lane_of[e->key.task])
			add_run(x, e, runs + (size_t)(lane_of[e->key.task] - 1) * FR_PAGE_BUCKETS);
	for (size_t i = 0; i < (size_t)x->n_lanes * FR_PAGE_BUCKETS; i++)
		x->lanes[i / FR_PAGE_BUCKETS].runs[i % FR_PAGE_BUCKETS] =
			(uint8_t)FR_MIN(255.0, 255 * runs[i] / (double)x->run_ns + 0.5);
	return 0;
}

int fr_page_lanes_choose(struct fr_page *x)
{
	const size_t n = fr_profile_n_tasks(x->profile);
	_cleanup_free_ struct lane *lanes = make_lanes(x);

	x->lanes = calloc(LANES_MAX, sizeof(*x->lanes));
	x->lane_of = calloc(n + 1, sizeof(*x->lane_of));
	if (!lanes || !x->lanes || !x->lane_of)
		return -ENOMEM;
	x->run_ns = x->data->bucket_ns;
	x->n_runs = x->data->n_buckets;
	for (size_t i = 0; i < n && x->n_lanes < LANES_MAX && lanes[i].score > 0; i++) {
		x->lanes[x->n_lanes].task = lanes[i].task;
		x->lane_of[lanes[i].task] = ++x->n_lanes;
	}
	return fill_runs(x, x->lane_of);
}

int fr_page_lanes(const struct fr_page *x)
{
	fprintf(x->out, ",\n\"kinds\":[");
	for (size_t i = 0; i < FR_ARRAY_SIZE(kinds); i++)
		fprintf(x->out, "%s\"%s\"", i ? "," : "", kinds[i]);
	fprintf(x->out, "],\n\"run_ns\":%" PRIu64 ",\"lanes\":[", x->run_ns);
	for (uint32_t i = 0; i < x->n_lanes; i++) {
		const struct fr_page_lane *lane = &x->lanes[i];

		fprintf(x->out, "%s{\"task\":%u,\"cause\":%s,\"runs\":\"", i ? ",\n" : "\n",
			x->tasks.of[lane->task] - 1, is_cause(x, lane->task) ? "true" : "false");
		fr_page_base64(x->out, lane->runs, x->n_runs);
		fputs("\"}", x->out);
	}
	return put_waits(x);
}
