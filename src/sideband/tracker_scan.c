// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scans of the machine. The records of the first scan have time 0 and go into the file and directly into both
 * models. A later scan repairs a loss. The records of a later scan have the time of its start, and go into
 * the file, the head model and the ring. During a later scan, the ring is frozen: no new chunk gets a low
 * watermark later than this time. The freeze ends when the EXITs are written, or the scan has failed.
 * docs/design/32 gives the reasons.
 *
 *     freeze │ read /proc │ head model reaches the time of the freeze │ EXITs of gone processes │ unfreeze
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <unistd.h>

#define SCAN_GAP_NS FR_NSEC_PER_SEC
/* After a scan, the tracker waits nine times as long as the scan took. So scans take at most a tenth of the
   time. */
#define SCAN_REST_FACTOR 9
/* A scan waits for the observer at most five seconds, for a hundredth of a second each time. */
#define OBSERVER_WAITS 500

/* Processes the queues, and lets the observer catch up. Until the first round after the scan, the observer
   has to keep the records of the scan, and its queue is bounded. */
static void pump(struct tracker_run *run)
{
	struct fr_tracker *t = run->tracker;

	(void)tracker_pump(t);
	while (t->is_observer_behind && run->waits < OBSERVER_WAITS && !atomic_load(&t->stop)) {
		run->waits++;
		usleep(10000);
		(void)tracker_pump(t);
	}
}

static int put(void *ctx, const struct perf_event_header *record)
{
	struct tracker_run *run = ctx;
	const size_t before = run->records.len;
	int r;

	if (atomic_load(&run->tracker->stop))
		return -ECANCELED;
	r = tracker_run_add(run, record);
	/* Each time the run was flushed, process the queues: on a large machine a scan takes so long that the
	   queues would overflow. */
	if (run->records.len < before)
		pump(run);
	return r;
}

static int scan(struct fr_tracker *t, uint64_t time_ns, struct fr_diag *d)
{
	struct tracker_run run = {.tracker = t, .time_ns = time_ns};
	struct fr_scan_config config = {.time_ns = time_ns,
		.id = t->config.sideband_id,
		.pids = t->config.pids,
		.n_pids = t->config.n_pids,
		.kernel = true,
		.unseen = &t->unseen};
	uint64_t begin = fr_monotonic_ns(), end;
	int r, hidden;

	tracker_modules_remember(t);
	r = hidden = fr_scan(&config, put, &run, d);
	if (r >= 0) {
		r = tracker_run_flush(&run);
		(void)tracker_pump(t);
	}
	fr_buf_deinit(&run.records);
	end = fr_monotonic_ns();
	t->next_scan_ns = end + FR_MAX(SCAN_GAP_NS, SCAN_REST_FACTOR * (end - begin));
	atomic_store(&t->scan_ns, end - begin);
	if (r < 0)
		return r;
	atomic_store(&t->kernel_is_hidden, hidden == 1);
	atomic_store(&t->processes_are_hidden, t->unseen.processes);
	atomic_store(&t->maps_hidden, t->unseen.maps);
	if (!t->retry_ns)
		t->retry_after_ns = 0;
	return 0;
}

int tracker_scan_first(struct fr_tracker *t, struct fr_diag *d)
{
	int r = scan(t, 0, d);

	atomic_fetch_add(&t->scans, r == 0);
	return r;
}

void tracker_scan_end(struct fr_tracker *t)
{
	if (t->scan_ns_now)
		t->config.unfreeze(t->config.ctx);
	t->scan_ns_now = 0;
	t->scan_is_read = false;
}

void tracker_scan_freeze(struct fr_tracker *t)
{
	tracker_compact_stop_writing(t);
	t->scan_ns_now = t->config.freeze(t->config.ctx);
	/* If the events were reopened, the records of the scan need an event id of the new openings. */
	tracker_update_session(t);
}

int tracker_scan_read(struct fr_tracker *t)
{
	int r = scan(t, t->scan_ns_now, NULL);

	if (r < 0)
		tracker_scan_end(t);
	else
		t->scan_is_read = true;
	return r;
}

static int put_gone(struct fr_tracker *t, const struct fr_buf *gone, uint64_t time_ns)
{
	struct tracker_run run = {.tracker = t, .time_ns = time_ns};
	struct fr_record_iter it = fr_record_iter(gone->data, gone->len);
	const struct perf_event_header *h;
	int r = 0;

	while (r == 0 && (h = fr_record_next(&it)))
		r = tracker_run_add(&run, h);
	if (r == 0)
		r = tracker_run_flush(&run);
	fr_buf_deinit(&run.records);
	return r;
}

void tracker_scan_settle(struct fr_tracker *t)
{
	_cleanup_buf_ struct fr_buf gone = {0};
	uint64_t time_ns = t->scan_ns_now;
	int r = 0;

	/* Wait until /proc has been read, and until since_ns is later than the start of the scan. Before
	   that, the head model may lack records that are older than the scan. */
	if (!t->scan_is_read || t->since_ns <= time_ns)
		return;
	/* During a scan, tracker_head_advance() applies only records that are older than scan_ns_now. The
	   records of the scan have the time scan_ns_now, so raise it to apply them, too. */
	t->scan_ns_now++;
	tracker_head_advance(t, t->since_ns);
	/* A scan of chosen processes does not see their children, and a scan without permission does not see
	   all processes. So these two kinds of scans do not show which processes are gone. */
	if (t->config.n_pids == 0 && !t->unseen.processes)
		r = fr_model_write_gone(t->head.model, time_ns, t->config.sideband_id, &gone);
	if (r == 0)
		r = put_gone(t, &gone, time_ns);
	if (r < 0)
		atomic_store(&t->scan_wanted, true);
	tracker_scan_end(t);
	if (r == 0 && t->config.scanned)
		t->config.scanned(t->config.ctx, time_ns);
	atomic_fetch_add(&t->scans, 1);
}
