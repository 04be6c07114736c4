/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Other events, or the same events opened again, in place of those that are recorded:
 *
 *     old rings ─────────────────────────┤ drained, closed
 *     new rings             ├ enabled ───┼──────────────►
 *                                        cut-over: older records come from the old rings, younger ones from
 *                                        the new rings
 *
 * So no record is missing, and none is there twice. The old events stay in the session as long as the ring
 * has samples of them. Main thread.
 */

#include "flightrecd/daemon.h"

/* Cut over to NEXT, which is open and not enabled. 0, and NEXT is the old recording; a negative errno with D:
   what is recorded has not changed. NEXT is the caller's to close in both cases. */
int fr_daemon_switch(struct fr_daemon *daemon, struct fr_recording *next, struct fr_diag *d);

/* Watch for CPUs that come. */
void fr_daemon_watch_cpus(struct fr_daemon *daemon);
/* Every few seconds: open the events again if CPUs came, or if the recorded cgroup was made again. */
void fr_daemon_reopen_tick(struct fr_daemon *daemon);
