/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPUBudget=: decides when the sampling frequencies step down, and when they step up again. The functions
 * read no clock and no events, so tests can pass any times.
 *
 *   a window above the budget            ─► down: half of the frequency, at least 1/16 of the configured one
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
	/* Above the budget at the lowest frequency. Returned once, and again only after a quiet minute. */
	FR_BUDGET_EXHAUSTED,
};

struct fr_budget {
	uint64_t ppm;		   /* millionths of one CPU; 0: no limit */
	unsigned divisor;	   /* set it back if the frequencies could not be changed */
	unsigned divisor_max;	   /* 1: no event has a frequency */
	uint64_t used_ppm;	   /* used CPU time in the last complete window */
	uint64_t since_ns, cpu_ns; /* begin of the open window, and CPU time then; 0: there is no window */
	uint64_t quiet_since_ns;   /* begin of the time below half of the budget; 0: not below it */
	bool is_exhausted;	   /* FR_BUDGET_EXHAUSTED was returned */
};

void fr_budget_init(struct fr_budget *b, uint64_t ppm, unsigned divisor_max);
/* Set another budget. Returns UP if there is no limit any more and the divisor is 1 again; otherwise STAY. */
enum fr_budget_verdict fr_budget_change(struct fr_budget *b, uint64_t ppm);
/* Decide at NOW_NS. CPU_NS is the CPU time that the process has used so far. If it returns DOWN or UP,
   b->divisor has changed. Call it every few seconds. */
enum fr_budget_verdict fr_budget_tick(struct fr_budget *b, uint64_t now_ns, uint64_t cpu_ns);
