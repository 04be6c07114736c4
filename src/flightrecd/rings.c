// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/rings.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "config/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The side-band of all rings needs far less memory than their samples: on machines that start few programs,
   less than a hundredth. This is enough for a machine that starts programs all the time. */
#define SIDEBAND_PART 8
#define SIDEBAND_MIN (4ULL << 20)

uint64_t fr_daemon_sideband_default(const struct fr_config *c)
{
	uint64_t sum = c->ring_bytes;

	for (size_t i = 0; i < c->n_ring; i++)
		sum += c->ring[i].size_bytes;
	return c->sideband_ring_bytes ? c->sideband_ring_bytes : FR_MAX(sum / SIDEBAND_PART, SIDEBAND_MIN);
}

uint64_t fr_daemon_sideband_bytes(const struct fr_daemon *m)
{
	const uint64_t now = fr_history_size(m->rings.sideband),
		       wanted = fr_daemon_sideband_default(m->config);

	return m->config->sideband_ring_bytes ? wanted : FR_MAX(now, wanted);
}

/* Takes both descriptors. NEXT_FD is -1, or the ring to which the previous instance moved the frames of FD
   when it was killed. The ring keeps its size: fr_daemon_fit_rings() changes it later. Returns 0; or a
   negative errno, with a message in D. */
static int adopt_ring(const struct fr_history_config *config, int fd, int next_fd, const char *name,
	struct fr_history **ret, struct fr_diag *d)
{
	struct fr_history_config own = *config;
	struct fr_history_adopted adopted;
	int r;

	own.keep_size = true;
	r = fr_history_adopt(&own, fd, ret, &adopted, d);
	if (r < 0) {
		close(fd);
		fr_closep(&next_fd);
		return r;
	}
	if (next_fd < 0)
		return 0;
	r = fr_handover_finish_resize(next_fd, &own, ret, &adopted);
	if (r < 0)
		fr_log(LOG_WARNING,
			"the interrupted change of Size= of the ring %s cannot be finished, the old ring "
			"stays: %s",
			name, strerror(-r));
	return 0;
}

int fr_daemon_check_ring_memory(
	const struct fr_daemon *m, uint64_t bytes, const char *origin, struct fr_diag *d)
{
	/* At a start, the tables of the unwinder come later. */
	const bool comes = !m->recorder && atomic_load(&m->unwinder);

	return fr_memory_check_ring_here(comes ? m->config->unwind_memory_bytes : 0, 0, bytes, origin, d);
}

int fr_daemon_open_ring(struct fr_daemon *m, const char *name, const struct fr_history_config *config,
	const char *origin, struct fr_history **ret, struct fr_diag *d)
{
	const int fd = fr_handover_take_part(&m->handover, name),
		  next_fd = fr_handover_take_part(&m->handover, name);
	struct fr_diag why = {0};
	int r;

	if (fd >= 0) {
		r = adopt_ring(config, fd, next_fd, name, ret, &why);
		if (r == 0)
			return 1;
		fr_log(LOG_WARNING, "the ring %s of the previous instance is lost: %s", name, why.what);
	}
	r = fr_daemon_check_ring_memory(m, config->size_bytes, origin, d);
	return r < 0 ? r : fr_history_new(config, ret, d);
}

void fr_daemon_sideband_evicted(void *ctx, const struct fr_frame *frame)
{
	struct fr_daemon *m = ctx;

	/* There is no tracker yet while an adopted ring is opened. The tracker will find this side-band in
	   the auxiliary file. */
	if (m->tracker)
		(void)fr_tracker_push_evicted(m->tracker, frame->seq, frame->low_watermark_ns,
			frame->sideband, frame->sideband_len);
}

void fr_daemon_ignore_evicted(void *ctx, const struct fr_frame *frame)
{
}

int fr_daemon_open_rings(struct fr_daemon *m, const struct fr_history_config *config, struct fr_diag *d)
{
	const struct fr_config *c = m->config;
	struct fr_history_config of_ring = {.populate = config->populate,
		.level = config->level,
		.evicted = config->evicted,
		.ctx = config->ctx};
	struct fr_history *sideband;
	int r = 0;

	fr_rings_set_name(&m->rings, 0, FR_RING_DEFAULT);
	/* If the previous instance had more rings, the older side-band is in the ring of the side-band. */
	if (!c->n_ring && !fr_handover_has_part(&m->handover, FR_STATE_SIDEBAND))
		return 0;
	of_ring.size_bytes = fr_daemon_sideband_default(c);
	r = fr_daemon_open_ring(m, FR_STATE_SIDEBAND, &of_ring, "SidebandRing=", &sideband, d);
	if (r < 0)
		return r;
	if (r > 0)
		m->rings.sideband = sideband;
	else if ((r = fr_rings_move_sideband(&m->rings, sideband)) < 0)
		return fr_fail_errno(d, r, NULL, "cannot make the ring of the side-band");
	r = 0;
	of_ring.evicted = fr_daemon_ignore_evicted;
	for (size_t i = 0; r >= 0 && i < c->n_ring; i++) {
		of_ring.size_bytes = c->ring[i].size_bytes;
		of_ring.level = fr_config_ring_level(c, &c->ring[i]);
		r = fr_daemon_open_ring(
			m, c->ring[i].name, &of_ring, c->ring[i].origin, &m->rings.ring[m->rings.n], d);
		fr_rings_set_name(&m->rings, m->rings.n, c->ring[i].name);
		m->rings.n += r >= 0;
	}
	return FR_MIN(r, 0);
}

void fr_daemon_close_rings(struct fr_daemon *m)
{
	for (unsigned i = 0; i < m->rings.n; i++)
		fr_history_free(m->rings.ring[i]);
	fr_history_free(m->rings.sideband);
	m->rings = (struct fr_rings){0};
}
