// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/resize.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "config/memory.h"
#include "flightrecd/stages.h"
#include "flightrecd/watchdog.h"

#include <errno.h>
#include <time.h>

/* How long a resize waits for a scan of /proc. No resize is possible during a scan, because the scan freezes
   the low watermarks (docs/GLOSSARY.md). A scan of 100,000 processes takes this long. A scan that waits for a
   disk can take much longer. */
#define FREEZE_TIMEOUT_NS (2 * FR_NSEC_PER_SEC)
#define FIT_TRIES 10 /* number of tries at a start; each waits for up to FREEZE_TIMEOUT_NS */
/* How long a step of a resize waits for the tracker, if the queue of evicted side-band is more than half
   full. If the queue is still so full after this time, the tracker probably waits for its disk, so the next
   steps do not wait for the tracker. If the queue has no room for a record, the record is dropped and counted
   as a loss, and a scan finds the missing names. */
#define TRACKER_PATIENCE_MS 200

struct resizing {
	struct fr_daemon *m;
	bool tracker_waits; /* the tracker was too slow in a step: the next steps do not wait for it */
};

static void store_new_ring(void *ctx, int fd)
{
	const struct resizing *x = ctx;

	fr_handover_add_ring(&x->m->handover, fd);
}

/* A resize evicts frames, and evicted side-band goes to the tracker through a bounded queue. So this function
   waits while this queue is more than half full. The main thread does not return to its loop during a resize,
   so it feeds the watchdog here. */
static void on_step(void *ctx)
{
	const struct timespec ms = {.tv_nsec = (long)FR_NSEC_PER_MSEC};
	struct resizing *x = ctx;

	for (unsigned i = 0;
		i < TRACKER_PATIENCE_MS && !x->tracker_waits && fr_tracker_is_behind(x->m->tracker); i++)
		nanosleep(&ms, NULL);
	x->tracker_waits |= fr_tracker_is_behind(x->m->tracker);
	if (x->m->watchdog_usec)
		fr_daemon_feed_watchdog(x->m);
}

static int resize(struct fr_daemon *m, uint64_t bytes, struct fr_history_adopted *ret, struct fr_diag *d)
{
	struct resizing resizing = {.m = m};
	const struct fr_recorder_resize calls = {store_new_ring, on_step, &resizing};
	int r;

	if (!fr_lock_until(&m->freeze_lock, fr_monotonic_ns() + FREEZE_TIMEOUT_NS))
		return fr_fail_errno(
			d, -EBUSY, "try again", "the ring cannot change its size during a scan of /proc");
	fr_lock(&m->parts_lock);
	r = fr_recorder_resize(m->recorder, &m->history, bytes, &calls, ret, d);
	fr_unlock(&m->parts_lock);
	fr_unlock(&m->freeze_lock);
	return r;
}

int fr_daemon_resize(struct fr_daemon *m, const struct fr_config *config, struct fr_history_adopted *ret)
{
	struct fr_memory memory;
	int r;

	m->ring_kept = (struct fr_diag){0};
	fr_memory_read("", &memory);
	r = fr_memory_check_ring(
		&memory, fr_history_size(m->history), config->ring_bytes, config->ring_origin, &m->ring_kept);
	if (r == 0)
		r = resize(m, config->ring_bytes, ret, &m->ring_kept);
	if (r < 0) {
		if (!m->ring_kept.code)
			fr_fail_errno(&m->ring_kept, r, NULL, "the ring cannot change its size");
		return r;
	}
	m->handover.ring_number += !ret->in_place;
	fr_daemon_store(m);
	return 0;
}

void fr_daemon_fit_ring(struct fr_daemon *m)
{
	const uint64_t now_bytes = fr_history_size(m->history);
	struct fr_history_adopted adopted = {0};
	char size[FR_UNIT_SIZE];
	int r = -EBUSY;

	if (m->memory || now_bytes == fr_history_whole_pages(m->config->ring_bytes))
		return;
	fr_size_format(now_bytes, size);
	/* -EBUSY: try again, because the first scan of /proc can still be running. */
	for (unsigned i = 0; i < FIT_TRIES && r == -EBUSY; i++)
		r = fr_daemon_resize(m, m->config, &adopted);
	if (r < 0) {
		m->config->ring_bytes = now_bytes;
		fr_log(LOG_WARNING, "RingSize= stays at %s: %s%s%s", size, m->ring_kept.what,
			m->ring_kept.hint[0] ? "; " : "", m->ring_kept.hint);
		return;
	}
	fr_log(LOG_INFO, "the adopted ring of %s has another size now%s", size,
		adopted.frames_left_out ? "; the oldest did not fit" : "");
}
