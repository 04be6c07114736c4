/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The rings of the sections [Ring NAME], and the ring of the side-band that they need. */

#include "flightrecd/daemon.h"

/* fr_history_config.evicted of the ring that has the side-band; CTX is the daemon. */
void fr_daemon_sideband_evicted(void *ctx, const struct fr_frame *frame);
/* The same for a ring of samples, which gives no side-band to the tracker. */
void fr_daemon_ignore_evicted(void *ctx, const struct fr_frame *frame);

/* Adopts or makes them, beside the ring of [Recorder], which is open. CONFIG is that of the ring of the
   side-band. Returns 0; or a negative errno, with a message in D. */
int fr_daemon_open_rings(struct fr_daemon *m, const struct fr_history_config *config, struct fr_diag *d);
/* Adopts the ring NAME of the previous instance, with its size, or makes an empty one. ORIGIN says where its
   size is set. Returns 1 if it was adopted; 0; or a negative errno, with a message in D. */
int fr_daemon_open_ring(struct fr_daemon *m, const char *name, const struct fr_history_config *config,
	const char *origin, struct fr_history **ret, struct fr_diag *d);
/* Returns 0; or -ENOMEM, with a message in D, if rings of BYTES bytes do not fit beside what is there. */
int fr_daemon_check_ring_memory(
	const struct fr_daemon *m, uint64_t bytes, const char *origin, struct fr_diag *d);
/* Returns the size that the ring of the side-band gets by C. */
uint64_t fr_daemon_sideband_default(const struct fr_config *c);
/* Returns the size of the ring of the side-band, which is there, by the configuration in force. With
   SidebandRing=auto, it does not become smaller. */
uint64_t fr_daemon_sideband_bytes(const struct fr_daemon *m);
/* Frees all rings. */
void fr_daemon_close_rings(struct fr_daemon *m);
