/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A bound of CPU time: work may take a burst at once, and in the long run a part of a CPU. Time in which
 * there is no work counts for the next burst. The functions read no clock. Not thread-safe.
 */

#include <stdbool.h>
#include <stdint.h>

#define FR_UNWIND_BURST_NS 5000000000LL
#define FR_UNWIND_THROTTLE_PPM 50000u

struct fr_unwind_throttle {
	int64_t credit_ns; /* CPU time that may be used now; at most the burst */
	uint64_t filled_ns;
};

/* Begins with a whole burst. */
void fr_unwind_throttle_init(struct fr_unwind_throttle *t, uint64_t now_ns);
/* Counts the time until NOW_NS. BUDGET_PPM is CPUBudget=, in millionths of a CPU (0: no limit): at most half
   of it may be used. */
void fr_unwind_throttle_fill(struct fr_unwind_throttle *t, uint64_t now_ns, uint64_t budget_ppm);
void fr_unwind_throttle_spend(struct fr_unwind_throttle *t, uint64_t cpu_ns);
bool fr_unwind_throttle_is_empty(const struct fr_unwind_throttle *t);
