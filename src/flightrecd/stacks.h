/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The unwinder in the daemon: user stacks by tables (unwind/unwinder.h). */

#include "flightrecd/daemon.h"

/* Returns the unwinder. Starts it if it does not run yet. Returns NULL if it cannot be started here: the reason
   is logged once, and `status` shows it. DAEMON is a struct fr_daemon. Only the thread that opens events calls
   this function: fr-start or fr-change. */
const struct fr_unwinder *fr_daemon_unwinder(void *daemon);
/* Gives side-band to the unwinder, if it runs. Tracker thread. */
void fr_daemon_unwind_sideband(struct fr_daemon *daemon, const void *records, size_t len);
void fr_daemon_unwind_round(struct fr_daemon *daemon, uint64_t since_ns);
