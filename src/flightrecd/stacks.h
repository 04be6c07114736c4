/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The unwinder in the daemon: user stacks by tables (unwind/unwinder.h). */

#include "flightrecd/daemon.h"

/* Returns the unwinder. Starts it if it does not run yet. Returns NULL if it cannot be started here: the
   reason is logged once, and `status` shows it. DAEMON is a struct fr_daemon. Only the thread that opens
   events calls this function: fr-start or fr-change. */
const struct fr_unwinder *fr_daemon_unwinder(void *daemon);
/* Gives the unwinder, if it runs, the bounds of the configuration in force. */
void fr_daemon_unwinder_set(struct fr_daemon *m);
/* Pass on to the unwinder, if it runs, what the tracker tells (struct fr_tracker_config). DAEMON is a struct
   fr_daemon. */
void fr_daemon_unwind_records(struct fr_daemon *daemon, const void *records, size_t len);
bool fr_daemon_unwind_round(void *daemon, uint64_t since_ns);
void fr_daemon_unwind_lost(void *daemon);
void fr_daemon_unwind_scanned(void *daemon, uint64_t scan_ns);
