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

/* Arm the triggers of the configuration, on the daemon's event loop, after the recorder runs. A trigger that
   cannot be armed is logged and keeps no other from being armed. A negative errno with D: no memory. */
int fr_daemon_triggers_open(struct fr_daemon *daemon, struct fr_diag *d);
/* Disarm all. A second call does nothing. */
void fr_daemon_triggers_close(struct fr_daemon *daemon);
/* Arm the triggers of FRESH instead, which gets the previous ones. Triggers that did not change stay armed.
   0, or -ENOMEM and nothing has changed. */
int fr_daemon_triggers_reload(struct fr_daemon *daemon, struct fr_config *fresh);
/* SIGUSR1 came. */
void fr_daemon_dump_by_signal(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
