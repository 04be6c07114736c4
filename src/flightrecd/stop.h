/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The end of the daemon. Main thread. */

#include "flightrecd/daemon.h"

/* Stop HOW says: at once, or after a last dump. The end of the service gets a last dump in any case. A second
   call does nothing. */
void fr_daemon_stop(struct fr_daemon *daemon, enum fr_stop how);
/* This is the end of the service, and no restart, as far as anybody tells. */
bool fr_daemon_service_ends(void);
