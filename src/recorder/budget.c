// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/budget.h"

void fr_budget_init(struct fr_budget *b, uint64_t ppm, unsigned divisor_max)
{
	*b = (struct fr_budget){.ppm = ppm, .divisor = 1, .divisor_max = divisor_max};
}

enum fr_budget_verdict fr_budget_change(struct fr_budget *b, uint64_t ppm)
{
	const bool back = !ppm && b->divisor > 1;

	if (ppm == b->ppm)
		return FR_BUDGET_STAY;
	/* With the new budget, a new window begins. The divisor stays, unless the new budget is no limit. */
	b->ppm = ppm;
	b->since_ns = b->quiet_since_ns = 0;
	b->is_exhausted = false;
	if (back)
		b->divisor = 1;
	return back ? FR_BUDGET_UP : FR_BUDGET_STAY;
}

static enum fr_budget_verdict above(struct fr_budget *b)
{
	b->quiet_since_ns = 0;
	if (b->divisor < b->divisor_max) {
		b->divisor *= 2;
		return FR_BUDGET_DOWN;
	}
	if (b->is_exhausted)
		return FR_BUDGET_STAY;
	b->is_exhausted = true;
	return FR_BUDGET_EXHAUSTED;
}

/* Returns the verdict after a window in which at most half of the budget was used. SINCE_NS is the start of
   the window. */
static enum fr_budget_verdict quiet(struct fr_budget *b, uint64_t since_ns, uint64_t now_ns)
{
	if (!b->quiet_since_ns)
		b->quiet_since_ns = since_ns;
	if (now_ns - b->quiet_since_ns < FR_BUDGET_QUIET_NS)
		return FR_BUDGET_STAY;
	b->quiet_since_ns = 0;
	b->is_exhausted = false;
	if (b->divisor == 1)
		return FR_BUDGET_STAY;
	b->divisor /= 2;
	return FR_BUDGET_UP;
}

enum fr_budget_verdict fr_budget_tick(struct fr_budget *b, uint64_t now_ns, uint64_t cpu_ns)
{
	const uint64_t since_ns = b->since_ns, length_ns = now_ns - since_ns;

	if (!b->ppm || (since_ns && length_ns < FR_BUDGET_WINDOW_NS))
		return FR_BUDGET_STAY;
	if (since_ns)
		b->used_ppm = (uint64_t)((double)(cpu_ns - b->cpu_ns) * 1e6 / (double)length_ns);
	b->since_ns = now_ns;
	b->cpu_ns = cpu_ns;
	if (!since_ns)
		return FR_BUDGET_STAY;
	if (b->used_ppm > b->ppm)
		return above(b);
	if (b->used_ppm <= b->ppm / 2)
		return quiet(b, since_ns, now_ns);
	b->quiet_since_ns = 0;
	return FR_BUDGET_STAY;
}
