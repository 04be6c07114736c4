/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "base/buf.h"
#include "history/history.h"

/* Sets RET to the newest samples of SNAPSHOT of HISTORY: whole records, at least FR_HISTORY_RUN_MAX bytes if
   there are so many. Reads the snapshot from its position to its end. Returns 0 or -ENOMEM. */
int fr_newest_samples(struct fr_history *history, struct fr_snapshot *snapshot, struct fr_buf *ret);
