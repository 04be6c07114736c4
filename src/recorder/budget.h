/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPUBudget=: decides when the sampling frequencies step down, and when they step up again. It reads no clock
 * and knows no events, so tests give it any times.
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
	FR_BUDGET_EXHAUSTED, /* above the budget at the lowest frequency; returned once until a quiet minute
			      */
};

struct fr_budget {
	uint64_t ppm; /* millionths of one CPU; 0: no limit */
	unsigned divisor, divisor_max;
	uint64_t used_ppm;	   /* in the last complete window */
	uint64_t since_ns, cpu_ns; /* of the open window; 0: there is none */
	uint64_t quiet_since_ns;   /* below half of the budget since; 0: not now */
	bool is_exhausted;	   /* that was returned */
};

/* DIVISOR_MAX 1: no event has a frequency. */
void fr_budget_init(struct fr_budget *b, uint64_t ppm, unsigned divisor_max);
/* Set another budget. UP: there is no limit any more, and all steps are taken back at once; otherwise STAY.
 */
enum fr_budget_verdict fr_budget_change(struct fr_budget *b, uint64_t ppm);
/* CPU_NS of CPU time were used up to NOW_NS. For DOWN and UP, the divisor is set. Call it every few seconds.
 */
enum fr_budget_verdict fr_budget_tick(struct fr_budget *b, uint64_t now_ns, uint64_t cpu_ns);
/* The events could not be stepped: they still have DIVISOR. */
void fr_budget_failed(struct fr_budget *b, unsigned divisor);
