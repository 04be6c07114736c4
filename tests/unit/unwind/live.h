/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The side-band of this machine, from the kernel, for an unwinder. */

#include "unwind/unwinder.h"

struct live;

/* Starts the side-band events on all CPUs, and then scans /proc. If BUILD_IDS is true, the records have
   build-ids, but only this process and its children have records: with build-ids, an event of the whole
   machine would disturb the perf of other tests (docs/design/10). Skips the test if that is not permitted. */
struct live *live_new(struct fr_unwinder *u, bool build_ids);
struct live *live_free(struct live *l);

/* Does a round: drains the kernel rings, and waits until the unwinder has applied it. */
void live_round(struct live *l);
