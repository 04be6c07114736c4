/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* RingMemory=: the ring in memory that survives a crash of the machine (docs/design/25). Only the thread
   fr-start calls these functions, except where a comment says otherwise. */

#include "flightrecd/daemon.h"

/* Opens RingMemory=. If it has a ring that no instance continues, because the machine has crashed, first
   makes a dump of this ring. If the memory cannot be used, or the dump cannot be written, the ring will be in
   a memfd: logs why, and sets daemon->no_memory. */
void fr_daemon_open_memory(struct fr_daemon *daemon, fr_progress progress);
/* Adds the dumps of fr_daemon_open_memory() to the counters. Call this function when the counters of the
   previous instance are there. */
void fr_daemon_count_rescued(struct fr_daemon *daemon);
/* Returns where the ring is in daemon->memory; all zeros: the ring is in a memfd. */
struct fr_history_memory fr_daemon_ring_memory(const struct fr_daemon *daemon);
/* Opens daemon->tail, when the ring is open. Returns 0; or a negative errno, with a message in D. */
int fr_daemon_open_tail(struct fr_daemon *daemon, struct fr_diag *d);
/* Stores the symbols of the kernel again, because its modules have changed. Tracker thread. */
void fr_daemon_modules_changed(struct fr_daemon *daemon);
/* Notes in the memory that there is something to rescue from now on. Call this function when the samples are
   enabled. Main thread. */
void fr_daemon_begin_memory(struct fr_daemon *daemon);
/* Notes in the memory that there is nothing to rescue, if no other instance will continue with the ring. Call
   this function after the end of the loop, if the last dump, if any, was written. Main thread. */
void fr_daemon_end_memory(struct fr_daemon *daemon);
void fr_daemon_close_memory(struct fr_daemon *daemon);
