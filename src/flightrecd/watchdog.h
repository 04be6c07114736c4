/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* WatchdogSec= of the service manager. Main thread. */

#include "flightrecd/daemon.h"

/* Feed the watchdog from the loop from now on, if the service manager asks for it. Returns 0 or a negative
   errno. */
int fr_daemon_add_watchdog(struct fr_daemon *daemon);
/* Feed the watchdog once, if the last round of the recorder thread is recent. */
void fr_daemon_feed_watchdog(struct fr_daemon *daemon);
