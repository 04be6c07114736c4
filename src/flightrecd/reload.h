/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The configuration, read again and put in force while recording goes on. Main thread. */

#include "flightrecd/daemon.h"

/* Begin a reload, or begin it when the change that is being prepared has ended. CALL (NULL: a signal) is
   answered when the reload has ended: with the arrays "changed" and "waiting" of lines for a person, or with
   an error, and then what is recorded has not changed. */
void fr_daemon_reload(struct fr_daemon *daemon, struct fr_call *call);
/* Answer the calls that wait for a reload that has not begun with D. */
void fr_reload_fail_calls(struct fr_daemon *daemon, const struct fr_diag *d);

/* The previous configuration stays in force, and WHY says why: into RET and the log. */
void fr_daemon_refuse_config(struct fr_diag *ret, const struct fr_diag *why);
