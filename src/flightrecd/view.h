/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "flightrecd/daemon.h"
#include "reporting/view.h"

/* Fill in what the metrics report. Main thread. */
void fr_daemon_view(struct fr_daemon *daemon, struct fr_view *ret);
/* Make `status`. It restarts the measurement of the longest round. The caller's to delete. Main thread. */
cJSON *fr_daemon_status(struct fr_daemon *daemon);
/* STATUS= for the service manager. */
void fr_daemon_notify_status(struct fr_daemon *daemon);
/* Log losses and failed compactions since the last call. */
void fr_daemon_log_news(struct fr_daemon *daemon);
