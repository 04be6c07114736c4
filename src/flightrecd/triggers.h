/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Connects src/trigger/ with the dumper, the log and the control socket. Only the main thread calls these
 * functions.
 *
 *   fr_triggers ─► dump, coalesce ─► dumps.c ─► dumper
 *               └► decided, armed ─► log, clients that watch
 */

#include "flightrecd/daemon.h"

#include <sys/signalfd.h>

/* Arms the triggers of the configuration on the daemon's event loop. Call this function when the recorder
   runs. If a trigger cannot be armed, the function logs why, and arms the other triggers nevertheless.
   Returns 0; or a negative errno, with a message in D. */
int fr_daemon_triggers_open(struct fr_daemon *daemon, struct fr_diag *d);
/* Disarms all triggers. A second call does nothing. */
void fr_daemon_triggers_close(struct fr_daemon *daemon);
/* Arms the triggers of the configuration `fresh` instead of the current triggers. Swaps the triggers of
   `fresh` with the triggers of the configuration in force. Triggers that did not change stay armed. Returns
   0; or -ENOMEM, without any change. */
int fr_daemon_triggers_reload(struct fr_daemon *daemon, struct fr_config *fresh);
/* Makes the dump that SIGUSR1 asks for, if the policy allows it. */
void fr_daemon_dump_by_signal(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
