/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Replaces the events that are recorded, by other events or by the same events opened again:
 *
 *     old rings ─────────────────────────┤ drained, closed
 *     new rings             ├ enabled ───┼──────────────►
 *                                        cut-over: older records come from the old rings, younger ones from
 *                                        the new rings
 *
 * So no record is missing, and no record is there twice. The old events stay in the session as long as the
 * ring has samples of them. Main thread.
 */

#include "flightrecd/daemon.h"

/* Cut over to NEXT, which is open and not enabled. Returns 0, and *NEXT then has the old recording; or a
   negative errno with D, and the old recording goes on. In both cases, the caller then closes NEXT. */
int fr_daemon_switch(struct fr_daemon *daemon, struct fr_recording *next, struct fr_diag *d);

/* Begin to watch for CPUs that come online. */
void fr_daemon_watch_cpus(struct fr_daemon *daemon);
/* Call this every few seconds. It opens the events again if CPUs came online, or if the recorded cgroup was
   removed and created again. */
void fr_daemon_reopen_tick(struct fr_daemon *daemon);
