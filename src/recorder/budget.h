/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPUBudget=: decides when the sampling frequencies step down, and when they step up again. The functions
 * read no clock and no events: the caller passes the times, so that tests can use any times.
 *
 *   a window above the budget            ─► down: half of the frequency (at least 1/16 of the configured one)
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
	/* The recorder is above the budget, and no frequency can be lowered any more. This verdict is
	   returned once. It is returned again only after a minute in which the recorder used at most half
	   of the budget. */
	FR_BUDGET_EXHAUSTED,
};

struct fr_budget {
	uint64_t ppm;		   /* millionths of one CPU; 0: no limit */
	unsigned divisor;	   /* divisor of the frequencies; the caller sets it back if it cannot change
				      the frequencies */
	unsigned divisor_max;	   /* the largest divisor; 1: no event has a frequency */
	uint64_t used_ppm;	   /* CPU time used in the last complete window, in millionths of a CPU */
	uint64_t since_ns, cpu_ns; /* begin of the current window (0: no window yet); CPU time that was used
				      before this begin */
	uint64_t quiet_since_ns;   /* begin of the time in which used_ppm is at most half of the budget; 0:
				      used_ppm is more */
	bool is_exhausted;	   /* FR_BUDGET_EXHAUSTED was returned */
};

void fr_budget_init(struct fr_budget *b, uint64_t ppm, unsigned divisor_max);
/* Sets another budget. If the new budget is no limit, and the divisor is larger than 1, sets the divisor to 1
   and returns UP. Otherwise returns STAY. */
enum fr_budget_verdict fr_budget_change(struct fr_budget *b, uint64_t ppm);
/* Returns the verdict at the time NOW_NS. CPU_NS is the CPU time that the process has used so far. Call this
   function every few seconds. If it returns DOWN or UP, it has changed b->divisor, and the caller changes the
   frequencies. */
enum fr_budget_verdict fr_budget_tick(struct fr_budget *b, uint64_t now_ns, uint64_t cpu_ns);
