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
/* Call this function at the end of a start. An adopted ring gets the size of RingSize=. If the ring cannot
   get this size, it keeps its size, and RingSize= in the configuration in force is set to that size. Only the
   thread fr-start calls this function. */
void fr_daemon_fit_ring(struct fr_daemon *daemon);
