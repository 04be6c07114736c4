/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "flightrecd/daemon.h"
#include "reporting/view.h"

/* Sets all members of RET except `rounds` and `waiting`. Only the main thread calls this function. */
void fr_daemon_view(struct fr_daemon *daemon, struct fr_view *ret);
/* Returns the object "status", which the caller deletes. A round is one pass over all kernel rings. The
   object has the longest round since the previous call of this function. Only the main thread calls this
   function. */
cJSON *fr_daemon_status(struct fr_daemon *daemon);
/* Sends the line STATUS= to the service manager. */
void fr_daemon_notify_status(struct fr_daemon *daemon);
/* Logs losses and failed compactions that have not been logged yet. */
void fr_daemon_log_news(struct fr_daemon *daemon);
