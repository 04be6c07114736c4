/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Joins src/trigger/ with the dumper, the log and the control socket. Main thread.
 *
 *   fr_triggers ─► dump, coalesce ─► dumps.c ─► dumper
 *               └► decided, armed ─► log, clients that watch
 */

#include "flightrecd/daemon.h"

#include <sys/signalfd.h>

/* Arm the triggers of the configuration on the daemon's event loop. Call it when the recorder runs. If a
   trigger cannot be armed, this is logged, and the other triggers are armed nevertheless. Returns 0 or a
   negative errno with D. */
int fr_daemon_triggers_open(struct fr_daemon *daemon, struct fr_diag *d);
/* Disarm all triggers. A second call does nothing. */
void fr_daemon_triggers_close(struct fr_daemon *daemon);
/* Arm the triggers of FRESH instead of the present ones. Move the triggers of FRESH into the configuration in
   force, and those of the configuration in force into FRESH. Triggers that did not change stay armed. Returns
   0; or -ENOMEM, and then nothing has changed. */
int fr_daemon_triggers_reload(struct fr_daemon *daemon, struct fr_config *fresh);
/* Make the dump that SIGUSR1 asks for, if the policy allows it. */
void fr_daemon_dump_by_signal(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
