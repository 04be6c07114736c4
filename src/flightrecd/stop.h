/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The end of the daemon. Main thread. */

#include "flightrecd/daemon.h"

/* Stop the daemon as HOW says: at once, or after a last dump. At the end of the service, FR_STOP_CLEAN also
   makes a last dump. A second call does nothing. */
void fr_daemon_stop(struct fr_daemon *daemon, enum fr_stop how);
/* Returns true if the service manager ends the service, or does not tell whether it ends or restarts the
   service. Returns false if it restarts the service, or if this process is not a service. */
bool fr_daemon_service_ends(void);
