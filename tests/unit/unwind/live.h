/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The side-band of this machine, from the kernel, for an unwinder. */

#include "unwind/unwinder.h"

struct live;

/* Starts the side-band events on all CPUs, and then scans /proc. Skips the test if that is not permitted. */
struct live *live_new(struct fr_unwinder *u);
struct live *live_free(struct live *l);

/* Does a round: drains the kernel rings, and waits until the unwinder has applied it. */
void live_round(struct live *l);
