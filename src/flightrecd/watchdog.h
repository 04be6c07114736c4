/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* WatchdogSec= of the service manager. Main thread. */

#include "flightrecd/daemon.h"

/* Feed the watchdog from the loop, if the service manager asks for it. 0 or a negative errno. */
int fr_daemon_add_watchdog(struct fr_daemon *daemon);
/* Feed it once, if the recorder thread lives. */
void fr_daemon_feed_watchdog(struct fr_daemon *daemon);
