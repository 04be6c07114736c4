/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the configuration again and puts it in force, while recording goes on. Only the main thread calls
   these functions. */

#include "flightrecd/daemon.h"

/* Begins a reload: at once, or, if a change is being prepared, when that change has ended. CALL gets its
   answer when the reload has ended. CALL is NULL if a signal asks for the reload. The answer has the arrays
   "changed" and "waiting", whose items are lines for a person. If the answer is an error, the previous
   configuration stays in force. */
void fr_daemon_reload(struct fr_daemon *daemon, struct fr_call *call);
/* Ends the calls that wait for a reload that has not begun. The calls get the error D. */
void fr_reload_fail_calls(struct fr_daemon *daemon, const struct fr_diag *d);

/* The parameter `why` says why the previous configuration stays in force. Copies `why` to RET, and logs
   it. */
void fr_daemon_refuse_config(struct fr_diag *ret, const struct fr_diag *why);
