/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Ends the daemon. Only the main thread calls these functions. */

#include "flightrecd/daemon.h"

/* The parameter `how` says how to stop the daemon: at once, or after a last dump. If fr_daemon_service_ends()
   returns true, FR_STOP_CLEAN also makes a last dump. A second call does nothing. */
void fr_daemon_stop(struct fr_daemon *daemon, enum fr_stop how);
/* Returns false if this process is not a service, or if the service manager restarts the service. Returns
   true otherwise, also if the service manager does not say what it does. */
bool fr_daemon_service_ends(void);
