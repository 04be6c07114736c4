// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/resize.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "config/memory.h"
#include "flightrecd/rings.h"
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

/* Returns the ring with the number RING; m->rings.n: that of the side-band. */
static struct fr_history **ring_at(struct fr_daemon *m, unsigned ring)
{
	return ring < m->rings.n ? &m->rings.ring[ring] : &m->rings.sideband;
}

static const char *name_of(const struct fr_daemon *m, unsigned ring)
{
	return ring < m->rings.n ? m->rings.name[ring] : FR_STATE_SIDEBAND;
}

struct resizing {
	struct fr_daemon *m;
	unsigned ring;
	bool tracker_waits; /* the tracker was too slow in a step: the next steps do not wait for it */
};

static void store_new_ring(void *ctx, int fd)
{
	struct resizing *x = ctx;

	if (x->ring)
		fr_handover_add_part(&x->m->handover, name_of(x->m, x->ring), fd, &x->m->recording.session);
	else
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

static int resize(
	struct fr_daemon *m, unsigned ring, uint64_t bytes, struct fr_history_adopted *ret, struct fr_diag *d)
{
	struct resizing resizing = {.m = m, .ring = ring};
	const struct fr_recorder_resize calls = {store_new_ring, on_step, &resizing};
	int r;

	if (!fr_lock_until(&m->freeze_lock, fr_monotonic_ns() + FREEZE_TIMEOUT_NS))
		return fr_fail_errno(
			d, -EBUSY, "try again", "the ring cannot change its size during a scan of /proc");
	fr_lock(&m->parts_lock);
	r = fr_recorder_resize(m->recorder, ring_at(m, ring), bytes, &calls, ret, d);
	fr_unlock(&m->parts_lock);
	fr_unlock(&m->freeze_lock);
	return r;
}

int fr_daemon_resize(struct fr_daemon *m, unsigned ring, uint64_t bytes, const char *origin,
	struct fr_history_adopted *ret, struct fr_diag *d)
{
	int r;

	*d = (struct fr_diag){0};
	r = fr_memory_check_ring_here(0, fr_history_size(*ring_at(m, ring)), bytes, origin, d);
	if (r < 0)
		return r;
	r = resize(m, ring, bytes, ret, d);
	if (r < 0 && !d->code)
		fr_fail_errno(d, r, NULL, "the ring cannot change its size");
	if (r == 0 && ring == 0)
		m->handover.ring_number += !ret->in_place;
	fr_daemon_store(m); /* also after an error: the store can have a new ring that nobody uses */
	return r;
}

static int fit(struct fr_daemon *m, unsigned ring, uint64_t bytes, const char *origin, struct fr_diag *d)
{
	const uint64_t now_bytes = fr_history_size(*ring_at(m, ring));
	struct fr_history_adopted adopted = {0};
	char size[FR_UNIT_SIZE];
	int r = -EBUSY;

	if (now_bytes == fr_history_whole_pages(bytes))
		return 0;
	/* -EBUSY: try again, because the first scan of /proc can still be running. */
	for (unsigned i = 0; i < FIT_TRIES && r == -EBUSY; i++)
		r = fr_daemon_resize(m, ring, bytes, origin, &adopted, d);
	if (r == 0)
		fr_log(LOG_INFO, "the adopted ring %s of %s has another size now%s", name_of(m, ring),
			fr_size_format(now_bytes, size),
			adopted.frames_left_out ? "; the oldest did not fit" : "");
	return r;
}

static void fit_named_rings(struct fr_daemon *m)
{
	char size[FR_UNIT_SIZE];

	for (unsigned i = 1; i < m->rings.n; i++) {
		struct fr_ring_config *c = &m->config->ring[i - 1];
		struct fr_diag d = {0};

		if (fit(m, i, c->size_bytes, c->origin, &d) == 0)
			continue;
		c->size_bytes = fr_history_size(m->rings.ring[i]);
		fr_log(LOG_WARNING, "Size= of the ring %s stays at %s: %s%s%s", c->name,
			fr_size_format(c->size_bytes, size), d.what, d.hint[0] ? "; " : "", d.hint);
	}
}

void fr_daemon_fit_rings(struct fr_daemon *m)
{
	struct fr_diag d = {0};
	char size[FR_UNIT_SIZE];

	if (!m->memory && fit(m, 0, m->config->ring_bytes, m->config->ring_origin, &m->ring_kept) < 0) {
		m->config->ring_bytes = fr_history_size(m->rings.ring[0]);
		fr_log(LOG_WARNING, "RingSize= stays at %s: %s%s%s",
			fr_size_format(m->config->ring_bytes, size), m->ring_kept.what,
			m->ring_kept.hint[0] ? "; " : "", m->ring_kept.hint);
	}
	fit_named_rings(m);
	if (m->rings.sideband && fit(m, m->rings.n, fr_daemon_sideband_bytes(m), "SidebandRing=", &d) < 0)
		fr_log(LOG_WARNING, "the ring of the side-band keeps its size: %s%s%s", d.what,
			d.hint[0] ? "; " : "", d.hint);
}
