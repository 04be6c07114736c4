/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Feeds the watchdog of the service manager (WatchdogSec=). Only the main thread calls these functions. */

#include "flightrecd/daemon.h"

/* If the service manager has a watchdog for this process, makes the loop feed the watchdog from now on.
   Returns 0 or a negative errno. */
int fr_daemon_add_watchdog(struct fr_daemon *daemon);
/* Feeds the watchdog once, if the last round of the recorder thread (its last pass over all kernel rings) is
   recent. */
void fr_daemon_feed_watchdog(struct fr_daemon *daemon);
