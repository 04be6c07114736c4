/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The main loop. Only the main thread calls these functions. */

#include "base/buf.h"
#include "flightrecd/daemon.h"

/* Starts, and runs until a signal, `flightrecctl stop`, or the end of the recorded command or tasks stops the
   daemon. SAVED_CONFIG and INHERITED: see fr_start_begin(). Returns an exit code. */
int fr_daemon_run(struct fr_daemon *daemon, struct fr_buf *saved_config, bool inherited);
/* Closes everything that is open. Call this function at the end, even if fr_daemon_run() was not called. */
void fr_daemon_close(struct fr_daemon *daemon);
