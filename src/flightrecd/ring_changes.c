// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/ring_changes.h"
#include "base/cleanup.h"
#include "flightrecd/rings.h"
#include "flightrecd/stages.h"
#include "flightrecd/watchdog.h"

#include <errno.h>
#include <string.h>

/* How long a new ring waits for a scan of /proc, which freezes the low watermarks. */
#define FREEZE_TIMEOUT_NS (2 * FR_NSEC_PER_SEC)

/* Returns the ring with this name; NULL if there is none. */
static struct fr_history *find_ring(const struct fr_daemon *m, const char *name)
{
	for (unsigned i = 1; i < m->rings.n; i++)
		if (!strcmp(m->rings.name[i], name))
			return m->rings.ring[i];
	return NULL;
}

static int add_sideband_ring(struct fr_daemon *m, const struct fr_config *fresh, struct fr_diag *d)
{
	const struct fr_history_config config = {.size_bytes = fr_daemon_sideband_default(fresh),
		.populate = true,
		.level = m->config->compression_level,
		.evicted = fr_daemon_sideband_evicted,
		.ctx = m};
	struct fr_snapshot *pins;
	struct fr_history *to;
	int r;

	if (!fr_lock_until(&m->freeze_lock, fr_monotonic_ns() + FREEZE_TIMEOUT_NS))
		return fr_fail_errno(d, -EBUSY, "try again", "no ring can be added during a scan of /proc");
	r = fr_daemon_open_ring(m, FR_STATE_SIDEBAND, &config, "SidebandRing=", &to, d);
	if (r >= 0)
		r = fr_recorder_add_sideband_ring(m->recorder, to, &pins, d);
	if (r == 0) {
		fr_lock(&m->parts_lock);
		m->rings.sideband = to;
		fr_unlock(&m->parts_lock);
		fr_snapshot_free(pins);
		fr_daemon_store(m); /* also if the rest of the reload fails: the next side-band is in it */
	}
	fr_unlock(&m->freeze_lock);
	return r;
}

/* Checks whether all rings that FRESH needs, and that are not there yet, fit into the memory together. */
static int check_all(const struct fr_daemon *m, const struct fr_config *fresh, struct fr_diag *d)
{
	uint64_t bytes = m->rings.sideband ? 0 : fr_daemon_sideband_default(fresh);
	const char *origin = NULL;

	for (size_t i = 0; i < fresh->n_ring; i++)
		if (!find_ring(m, fresh->ring[i].name)) {
			bytes += fresh->ring[i].size_bytes;
			origin = fresh->ring[i].origin;
		}
	return origin ? fr_daemon_check_ring_memory(m, bytes, origin, d) : 0;
}

int fr_daemon_prepare_rings(
	struct fr_daemon *m, const struct fr_config *fresh, struct fr_rings *ret, struct fr_diag *d)
{
	int r = check_all(m, fresh, d);

	*ret = m->rings;
	if (fresh->n_ring && m->memory)
		return fr_fail(
			d, -EINVAL, "restart flightrecd", "RingMemory= is in use, and has room for one ring");
	if (r == 0 && fresh->n_ring && !m->rings.sideband)
		r = add_sideband_ring(m, fresh, d);
	ret->sideband = m->rings.sideband;
	ret->n = 1;
	for (size_t i = 0; r >= 0 && i < fresh->n_ring; i++) {
		const struct fr_ring_config *c = &fresh->ring[i];
		const struct fr_history_config config = {.size_bytes = c->size_bytes,
			.populate = true,
			.level = fr_config_ring_level(m->config, c),
			.evicted = fr_daemon_ignore_evicted};

		fr_rings_set_name(ret, ret->n, c->name);
		ret->ring[ret->n] = find_ring(m, c->name);
		if (!ret->ring[ret->n])
			r = fr_daemon_open_ring(m, c->name, &config, c->origin, &ret->ring[ret->n], d);
		ret->n += r >= 0;
		if (m->watchdog_usec)
			fr_daemon_feed_watchdog(m); /* it takes time to get the memory of a large ring */
	}
	if (r < 0)
		fr_daemon_free_rings(ret, &m->rings);
	return FR_MIN(r, 0);
}

static bool has_ring(const struct fr_rings *r, const struct fr_history *h)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->ring[i] == h)
			return true;
	return false;
}

void fr_daemon_free_rings(const struct fr_rings *from, const struct fr_rings *kept)
{
	for (unsigned i = 0; i < from->n; i++)
		if (!has_ring(kept, from->ring[i]))
			fr_history_free(from->ring[i]);
}

void fr_daemon_drop_rings(struct fr_daemon *m, const struct fr_rings *old)
{
	fr_lock(&m->parts_lock);
	for (unsigned i = 0; i < old->n; i++)
		if (!has_ring(&m->rings, old->ring[i]))
			fr_rings_count_dropped(&m->rings, old->ring[i]);
	fr_unlock(&m->parts_lock);
	fr_daemon_free_rings(old, &m->rings);
}
