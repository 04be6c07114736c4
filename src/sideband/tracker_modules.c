// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel modules that come while we record: the kernel sends no record for them. Loading one is the work of a
 * process, whose side-band wakes the tracker, which then looks at the list; and it looks before each dump.
 * That tells when a module was found, not when it was loaded; so where no other one is in the way, it stands
 * in the state at the ring's tail at once, and all samples in it have a name.
 */
#include "sideband/tracker_internal.h"
#include "sideband/scan.h"
#include "base/clock.h"
#include "perfdata/record.h"

#include <string.h>

#define LOOK_NS (2 * FR_NSEC_PER_SEC)

struct found {
	struct fr_tracker *tracker;
	struct fr_buf run;
	uint32_t n;
	uint64_t time_ns;
};

static int apply_early(struct fr_tracker *k, const struct perf_event_header *h)
{
	const struct fr_record_mmap *m = (const void *)h;
	int r = 0;

	if (h->type != PERF_RECORD_MMAP)
		return 0;
	pthread_mutex_lock(&k->lock);
	if (!fr_model_kernel_overlaps(
		    k->tail.model, m->addr, m->addr + m->len, m->filename, strlen(m->filename)))
		r = fr_model_apply(k->tail.model, h);
	pthread_mutex_unlock(&k->lock);
	return r;
}

static int put(void *ctx, const struct perf_event_header *record)
{
	struct found *f = ctx;
	int r = apply_early(f->tracker, record);

	if (r == 0 && f->run.len + record->size > INJECT_RUN_MAX) {
		r = tracker_tell(f->tracker, &f->run, f->n, f->time_ns);
		f->run.len = 0;
		f->n = 0;
	}
	f->n++;
	return r < 0 ? r : fr_buf_append(&f->run, record, record->size);
}

static void tell(struct fr_tracker *k)
{
	/* While a scan waits for its end, the ring is held already, by a time that is older. */
	bool held = k->scan_ns_now;
	struct found f = {
		.tracker = k, .time_ns = held ? fr_monotonic_ns() : k->config.freeze(k->config.ctx)};
	struct fr_scan_config config = {.time_ns = f.time_ns};
	int r;

	tracker_take_session(k); /* as in tracker_scan_hold() */
	config.id = k->config.sideband_id;
	r = fr_scan_modules(&config, k->config.modules_path, put, &f);
	if (r == 0)
		r = tracker_tell(k, &f.run, f.n, f.time_ns);
	if (!held)
		k->config.unfreeze(k->config.ctx);
	fr_buf_deinit(&f.run);
	if (r < 0)
		atomic_store(&k->scan_wanted, true);
}

void tracker_modules_remember(struct fr_tracker *k)
{
	k->modules_ns = fr_monotonic_ns();
	(void)fr_modules_digest(k->config.modules_path, &k->modules_digest);
}

void tracker_modules_check(struct fr_tracker *k, uint64_t now_ns)
{
	bool wanted = atomic_load(&k->modules_wanted);
	uint64_t before = k->modules_digest;

	if (!wanted && now_ns - k->modules_ns < LOOK_NS)
		return;
	tracker_modules_remember(k);
	if (k->modules_digest != before)
		tell(k);
	if (wanted) {
		pthread_mutex_lock(&k->lock);
		atomic_store(&k->modules_wanted, false);
		pthread_cond_broadcast(&k->progress);
		pthread_mutex_unlock(&k->lock);
	}
}
