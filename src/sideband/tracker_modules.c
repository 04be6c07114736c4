// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel modules that are loaded during the recording. The kernel sends no record for them. So the tracker
 * reads /proc/modules every two seconds while side-band comes, and also before each dump. The tracker does
 * not know when a module was loaded. So a new module also goes directly into the tail model (the processes
 * and modules at the time of the oldest frame) if no other module of this model has the same addresses.
 */
#include "sideband/tracker_internal.h"
#include "base/clock.h"
#include "perfdata/record.h"

#include <string.h>

#define CHECK_NS (2 * FR_NSEC_PER_SEC)

static int apply_to_tail(struct fr_tracker *t, const struct perf_event_header *h)
{
	const struct fr_record_mmap *m = (const void *)h;
	int r = 0;

	if (h->type != PERF_RECORD_MMAP)
		return 0;
	fr_lock(&t->lock);
	if (!fr_model_kernel_overlaps(
		    t->tail.model, m->addr, m->addr + m->len, m->filename, strlen(m->filename)))
		r = fr_model_apply(t->tail.model, h);
	fr_unlock(&t->lock);
	return r;
}

static int put(void *ctx, const struct perf_event_header *record)
{
	struct tracker_run *run = ctx;
	int r = apply_to_tail(run->tracker, record);

	return r < 0 ? r : tracker_run_add(run, record);
}

static void scan_modules(struct fr_tracker *t)
{
	/* During a scan, the ring is frozen already, and the time of the freeze is in the past. */
	const bool is_frozen = t->scan_ns_now;
	struct tracker_run run = {
		.tracker = t, .time_ns = is_frozen ? fr_monotonic_ns() : t->config.freeze(t->config.ctx)};
	struct fr_scan_config config = {.time_ns = run.time_ns};
	int r;

	tracker_update_session(t); /* see tracker_scan_freeze() */
	config.id = t->config.sideband_id;
	r = fr_scan_modules(&config, t->config.modules_path, put, &run);
	if (r == 0)
		r = tracker_run_flush(&run);
	if (!is_frozen)
		t->config.unfreeze(t->config.ctx);
	fr_buf_deinit(&run.records);
	if (r < 0)
		atomic_store(&t->scan_wanted, true);
}

void tracker_modules_remember(struct fr_tracker *t)
{
	t->modules_ns = fr_monotonic_ns();
	(void)fr_modules_digest(t->config.modules_path, &t->modules_digest);
}

void tracker_modules_check(struct fr_tracker *t, uint64_t now_ns)
{
	bool wanted = atomic_load(&t->modules_wanted);
	uint64_t before = t->modules_digest;

	if (!wanted && now_ns - t->modules_ns < CHECK_NS)
		return;
	tracker_modules_remember(t);
	if (t->modules_digest != before) {
		scan_modules(t);
		t->checkpoint_wanted = true;
		if (t->config.modules_changed)
			t->config.modules_changed(t->config.ctx);
	}
	if (wanted) {
		fr_lock(&t->lock);
		atomic_store(&t->modules_wanted, false);
		fr_cond_broadcast(&t->progress);
		fr_unlock(&t->lock);
	}
}
