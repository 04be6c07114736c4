/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Gives the ring another size while recording goes on. history/resize.c copies the frames (the blocks of
   compressed records in the ring). Only the main thread calls these functions, except where a comment says
   otherwise. */

#include "flightrecd/daemon.h"

/* Gives the ring with the number RING (m->rings.n: that of the side-band) the size of BYTES, and keeps the
   newest frames that fit. ORIGIN says where the size is set. Returns 0, and sets *RET to a description of the
   frames that the ring has now; or a negative errno, with a message in D, and the ring does not change. */
int fr_daemon_resize(struct fr_daemon *daemon, unsigned ring, uint64_t bytes, const char *origin,
	struct fr_history_adopted *ret, struct fr_diag *d);
/* Call this function at the end of a start. Each adopted ring gets the size of its key. If the ring cannot
   get this size, it keeps its size, and the key in the configuration in force is set to that size. Only the
   thread fr-start calls this function. */
void fr_daemon_fit_rings(struct fr_daemon *daemon);
