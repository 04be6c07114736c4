/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Keeps two snapshots of the counters. `status` computes rates from the older snapshot and the current
   counters. Only the main thread calls these functions. */

#include "base/clock.h"
#include "capture/capture.h"

#include <stddef.h>
#include <stdint.h>

#define FR_RATE_PERIOD_NS (5 * FR_NSEC_PER_SEC)

struct fr_counter_snapshot {
	uint64_t time_ns;  /* 0: no snapshot was taken */
	uint64_t cpu_ns;   /* CPU time of this process */
	uint64_t *samples; /* number of samples, at [event * n_cpus + cpu] */
};

struct fr_rates {
	struct fr_counter_snapshot older, newer;
};

/* Takes a snapshot of the counters. Call this function every FR_RATE_PERIOD_NS. */
void fr_rates_tick(struct fr_rates *r, const struct fr_capture *capture);
/* Drops both snapshots. Call this function when another capture replaces the capture of the snapshots. */
void fr_rates_reset(struct fr_rates *r);
/* Returns the snapshot from which rates are computed: the older snapshot, or the only snapshot. If there is
   no snapshot, the members of the returned snapshot are 0. */
const struct fr_counter_snapshot *fr_rates_base(const struct fr_rates *r);
