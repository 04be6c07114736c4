/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the recorder may cost: whether its frequencies step down, or up again. Knows no clock and no event:
 * times are given to it.
 *
 *   a window above the budget            ─► down: half of the frequency, to 1/16 of what was asked for
 *   a minute below half of the budget    ─► up: twice the frequency, which at most doubles the cost
 */

#include <stdbool.h>
#include <stdint.h>

#define FR_BUDGET_WINDOW_NS (10 * 1000000000ULL)
#define FR_BUDGET_QUIET_NS (60 * 1000000000ULL)
#define FR_BUDGET_DIVISOR_MAX 16

enum fr_budget_verdict {
	FR_BUDGET_STAY,
	FR_BUDGET_DOWN,
	FR_BUDGET_UP,
	FR_BUDGET_EXHAUSTED, /* above it, and nothing is left to step; once until a quiet minute */
};

struct fr_budget {
	uint64_t ppm; /* millionths of one CPU; 0: no limit */
	unsigned divisor, divisor_max;
	uint64_t used_ppm;	   /* in the last window that is whole */
	uint64_t since_ns, cpu_ns; /* of the window that is open; 0: none */
	uint64_t quiet_since_ns;   /* 0: is not quiet */
	bool told;		   /* EXHAUSTED */
};

/* DIVISOR_MAX 1: there is nothing to step. */
void fr_budget_init(struct fr_budget *b, uint64_t ppm, unsigned divisor_max);
/* Another budget, from now on. DOWN and UP as below: UP where there is no limit any more and a step is to be
   taken back, all of them at once. */
enum fr_budget_verdict fr_budget_change(struct fr_budget *b, uint64_t ppm);
/* CPU_NS of CPU time were used up to NOW_NS. DOWN and UP have set divisor. Call it every few seconds. */
enum fr_budget_verdict fr_budget_tick(struct fr_budget *b, uint64_t now_ns, uint64_t cpu_ns);
/* The step could not be made: it is DIVISOR still. */
void fr_budget_failed(struct fr_budget *b, unsigned divisor);
