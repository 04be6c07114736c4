/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Another RingSize= while recording goes on (history/resize.c copies). Main thread, except where it says
   otherwise. */

#include "flightrecd/daemon.h"

/* Give the ring the size that CONFIG asks for, with as much of the history as fits, into *RET. A negative
   errno: the ring has not changed, and daemon->ring_kept says why. */
int fr_daemon_resize(
	struct fr_daemon *daemon, const struct fr_config *config, struct fr_history_adopted *ret);
/* At the end of a start: an adopted ring gets the size of RingSize=, or RingSize= becomes that of the ring.
   The thread of the start. */
void fr_daemon_fit_ring(struct fr_daemon *daemon);
