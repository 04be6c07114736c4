/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The clients that watch decisions (`flightrecctl triggers --follow`). Main thread. */

#include "flightrecd/daemon.h"

#define FR_WATCHERS_MAX 16

/* CALL gets each decision from now on. 0; -EBUSY: there are FR_WATCHERS_MAX; -ENOMEM. */
int fr_watchers_add(struct fr_daemon *daemon, struct fr_call *call);
/* Send DECISION to each watcher that reads. */
void fr_watchers_send(struct fr_daemon *daemon, const struct fr_decision *decision);
/* After the server is closed. */
void fr_watchers_free(struct fr_daemon *daemon);
