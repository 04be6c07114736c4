// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scans of the machine. The first one has time 0 and goes straight into both models. A later one mends what
 * was lost now, while the model at the tail is as old as the ring: so its records go the way of all others,
 * through the file and the ring. All have the time of its begin, and the ring is held to promise nothing
 * younger until it is over:
 *
 *   hold │ read /proc: FORK, COMM, MMAP2 … │ the head reaches that time │ EXIT of whom nobody heard │ release
 */
#include "sideband/tracker_internal.h"
#include "sideband/scan.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/record.h"

#include <errno.h>

#define SCAN_GAP_NS FR_NSEC_PER_SEC
/* However long a scan takes, at most a tenth of the time goes into scans. */
#define SCAN_REST_FACTOR 9

struct scan_run {
	struct fr_tracker *tracker;
	uint64_t time_ns; /* 0: the first scan */
	struct fr_buf run;
	uint32_t n; /* records in it */
};

static int apply_run(struct fr_tracker *k, const struct fr_buf *run)
{
	int r = 0;

	tracker_file_append(k, run->data, run->len);
	pthread_mutex_lock(&k->lock);
	for (size_t at = 0; at < run->len && r == 0;) {
		const struct perf_event_header *h = (const void *)(run->data + at);

		r = fr_model_apply(k->tail.model, h);
		if (r == 0)
			r = fr_model_apply(k->head.model, h);
		at += h->size;
	}
	pthread_mutex_unlock(&k->lock);
	return r;
}

static int flush(struct scan_run *s)
{
	int r = s->time_ns ? tracker_tell(s->tracker, &s->run, s->n, s->time_ns)
			   : apply_run(s->tracker, &s->run);

	tracker_see(s->tracker, s->run.data, s->run.len);
	s->n = 0;
	s->run.len = 0;
	/* A scan of a large machine takes longer than the queues last. */
	tracker_pump(s->tracker);
	return r;
}

static int put(void *ctx, const struct perf_event_header *record)
{
	struct scan_run *s = ctx;
	int r;

	if (atomic_load(&s->tracker->stop))
		return -ECANCELED;
	if (s->run.len + record->size > INJECT_RUN_MAX) {
		r = flush(s);
		if (r < 0)
			return r;
	}
	s->n++;
	return fr_buf_append(&s->run, record, record->size);
}

static int scan(struct fr_tracker *k, uint64_t time_ns, struct fr_diag *d)
{
	struct scan_run s = {.tracker = k, .time_ns = time_ns};
	struct fr_scan_config config = {.time_ns = time_ns,
		.id = k->config.sideband_id,
		.pids = k->config.pids,
		.n_pids = k->config.n_pids,
		.kernel = true,
		.unseen = &k->unseen};
	uint64_t begin = fr_monotonic_ns(), end;
	int r, hidden;

	tracker_modules_remember(k);
	r = hidden = fr_scan(&config, put, &s, d);
	if (r >= 0)
		r = flush(&s);
	fr_buf_deinit(&s.run);
	end = fr_monotonic_ns();
	k->next_scan_ns = end + FR_MAX(SCAN_GAP_NS, SCAN_REST_FACTOR * (end - begin));
	atomic_store(&k->scan_ns, end - begin);
	if (r < 0)
		return r;
	atomic_store(&k->kernel_is_hidden, hidden == 1);
	atomic_store(&k->processes_are_hidden, k->unseen.processes);
	atomic_store(&k->maps_hidden, k->unseen.maps);
	if (!k->retry_ns)
		k->retry_after_ns = 0;
	return 0;
}

int tracker_scan_first(struct fr_tracker *k, struct fr_diag *d)
{
	int r = scan(k, 0, d);

	if (r == 0)
		atomic_fetch_add(&k->scans, 1);
	return r;
}

static void over(struct fr_tracker *k)
{
	k->scan_ns_now = 0;
	k->scan_is_read = false;
	k->config.unfreeze(k->config.ctx);
}

void tracker_scan_abandon(struct fr_tracker *k)
{
	if (k->scan_ns_now)
		over(k);
}

void tracker_scan_hold(struct fr_tracker *k)
{
	tracker_compact_stop_writing(k);
	k->scan_ns_now = k->config.freeze(k->config.ctx);
	/* Whatever was opened anew by then: an id that was closed has no record that is younger. */
	tracker_take_session(k);
}

int tracker_scan_held(struct fr_tracker *k)
{
	int r = scan(k, k->scan_ns_now, NULL);

	if (r < 0)
		over(k);
	else
		k->scan_is_read = true;
	return r;
}

int tracker_scan_again(struct fr_tracker *k)
{
	tracker_scan_hold(k);
	return tracker_scan_held(k);
}

/* In runs that the ring takes. */
static int tell_all(struct fr_tracker *k, const struct fr_buf *all, uint64_t time_ns)
{
	struct fr_buf run = {.data = all->data};
	uint32_t n = 0;
	int r = 0;

	for (size_t at = 0; at < all->len && r == 0;) {
		size_t size = ((const struct perf_event_header *)(all->data + at))->size;

		if (run.len + size > INJECT_RUN_MAX) {
			r = tracker_tell(k, &run, n, time_ns);
			run = (struct fr_buf){.data = all->data + at};
			n = 0;
		}
		run.len += size;
		n++;
		at += size;
	}
	return r == 0 ? tracker_tell(k, &run, n, time_ns) : r;
}

void tracker_scan_settle(struct fr_tracker *k)
{
	_cleanup_buf_ struct fr_buf gone = {0};
	uint64_t time_ns = k->scan_ns_now;
	int r = 0;

	/* Not before the head knows all that happened before the scan. */
	if (!k->scan_is_read || k->since_ns <= time_ns)
		return;
	k->scan_ns_now++; /* its own records, too */
	tracker_head_advance(k, k->since_ns);
	/* With a choice of processes a scan does not see their children, and without permission not all of
	   them: absence says nothing. */
	if (k->config.n_pids == 0 && !k->unseen.processes)
		r = fr_model_write_gone(k->head.model, time_ns, k->config.sideband_id, &gone);
	if (r == 0)
		r = tell_all(k, &gone, time_ns);
	if (gone.len)
		tracker_see(k, gone.data, gone.len);
	if (r < 0)
		atomic_store(&k->scan_wanted, true);
	over(k);
	atomic_fetch_add(&k->scans, 1);
}
