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
 * So no record is missing, and no record is taken twice. The old events stay in the session (the content of
 * the head of a perf.data file) as long as the ring has samples of them. Only the main thread calls these
 * functions.
 */

#include "flightrecd/daemon.h"

/* Cuts over to the recording `next`, which is open and not enabled. On success, puts the old recording into
   *next and returns 0. On failure, the old recording goes on, and the function returns a negative errno, with
   a message in D. In both cases, the caller has to close *next. */
int fr_daemon_switch(
	struct fr_daemon *daemon, struct fr_recording *next, const struct fr_rings *rings, struct fr_diag *d);

/* Begins to watch for CPUs that come online. */
void fr_daemon_watch_cpus(struct fr_daemon *daemon);
/* Call this function every few seconds. It opens the events again if CPUs came online, or if the recorded
   cgroup was removed and created again. */
void fr_daemon_reopen_tick(struct fr_daemon *daemon);
