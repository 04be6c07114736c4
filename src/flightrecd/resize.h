/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Gives the ring another size while recording goes on (history/resize.c copies the frames). Main thread,
   except where a comment says otherwise. */

#include "flightrecd/daemon.h"

/* Give the ring the size that CONFIG asks for, with the newest frames that fit. Returns 0, and *RET says
   which frames the ring has now; or a negative errno, and then the ring has not changed and daemon->ring_kept
   says why. */
int fr_daemon_resize(
	struct fr_daemon *daemon, const struct fr_config *config, struct fr_history_adopted *ret);
/* Call this at the end of a start. An adopted ring gets the size of RingSize=. If the ring cannot get this
   size, it keeps its size, and RingSize= in the configuration in force is set to that size. Thread of the
   start. */
void fr_daemon_fit_ring(struct fr_daemon *daemon);
