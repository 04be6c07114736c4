/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The numbers of `status` as metrics. */

#include "base/buf.h"
#include "flightrecd/daemon.h"

/* OpenMetrics text into RET (empty, the caller's to deinit), without a NUL. 0 or -ENOMEM. Main thread. */
int fr_metrics(struct fr_daemon *daemon, struct fr_buf *ret);
/* The method Metrics. */
void fr_verb_metrics(void *daemon, struct fr_call *call, const cJSON *parameters);
