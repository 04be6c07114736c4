/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Gives the ring another size while recording goes on. history/resize.c copies the frames (the blocks of
   compressed records in the ring). Only the main thread calls these functions, except where a comment says
   otherwise. */

#include "flightrecd/daemon.h"

/* Gives the ring the size that CONFIG asks for, and keeps the newest frames that fit. On success, sets *RET
   to a description of the frames that the ring has now, and returns 0. On failure, the ring does not change,
   daemon->ring_kept says why, and the function returns a negative errno. */
int fr_daemon_resize(
	struct fr_daemon *daemon, const struct fr_config *config, struct fr_history_adopted *ret);
/* Gives the ring with the number RING (from 1; m->rings.n: that of the side-band) another size, by the same
   rules, except that D gets the reason of a failure. ORIGIN says where the size is set. */
int fr_daemon_resize_ring(struct fr_daemon *daemon, unsigned ring, uint64_t bytes, const char *origin,
	struct fr_history_adopted *ret, struct fr_diag *d);
/* Call this function at the end of a start. Each adopted ring gets the size of its key. If the ring cannot
   get this size, it keeps its size, and the key in the configuration in force is set to that size. Only the
   thread fr-start calls this function. */
void fr_daemon_fit_rings(struct fr_daemon *daemon);
