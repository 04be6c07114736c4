/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Counters of two moments, to make rates of. Main thread. */

#include "base/clock.h"
#include "capture/capture.h"

#include <stddef.h>
#include <stdint.h>

#define FR_RATE_PERIOD_NS (5 * FR_NSEC_PER_SEC)

struct fr_counter_snapshot {
	uint64_t time_ns;  /* 0: not taken */
	uint64_t cpu_ns;   /* of this process */
	uint64_t *samples; /* [event * n_cpus + cpu] */
};

struct fr_rates {
	struct fr_counter_snapshot older, newer;
};

/* Read the counters. Call it every FR_RATE_PERIOD_NS. */
void fr_rates_tick(struct fr_rates *r, const struct fr_capture *capture);
/* Another capture counts from now on. */
void fr_rates_reset(struct fr_rates *r);
/* The snapshot that rates count from: the older one, or the first one where there is no other. */
const struct fr_counter_snapshot *fr_rates_base(const struct fr_rates *r);
