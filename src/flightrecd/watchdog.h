/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* WatchdogSec= of the service manager. Main thread. */

#include "flightrecd/daemon.h"

/* If the service manager has a watchdog for this process, make the loop feed the watchdog from now on.
   Returns 0 or a negative errno. */
int fr_daemon_add_watchdog(struct fr_daemon *daemon);
/* Feed the watchdog once, if the last round of the recorder thread is recent. */
void fr_daemon_feed_watchdog(struct fr_daemon *daemon);
