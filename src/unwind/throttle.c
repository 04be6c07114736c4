// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/throttle.h"
#include "base/cleanup.h"

void fr_unwind_throttle_init(struct fr_unwind_throttle *t, uint64_t now_ns)
{
	*t = (struct fr_unwind_throttle){FR_UNWIND_BURST_NS, now_ns};
}

void fr_unwind_throttle_fill(struct fr_unwind_throttle *t, uint64_t now_ns, uint64_t budget_ppm)
{
	uint64_t ppm = FR_UNWIND_THROTTLE_PPM;

	if (now_ns <= t->filled_ns)
		return;
	if (budget_ppm)
		ppm = FR_MIN(ppm, budget_ppm / 2);
	/* in millionths first: a product in ns would overflow after some days */
	t->credit_ns += (int64_t)((now_ns - t->filled_ns) / 1000 * ppm / 1000);
	t->credit_ns = FR_MIN(t->credit_ns, FR_UNWIND_BURST_NS);
	t->filled_ns = now_ns;
}

void fr_unwind_throttle_spend(struct fr_unwind_throttle *t, uint64_t cpu_ns)
{
	t->credit_ns -= (int64_t)cpu_ns;
}

bool fr_unwind_throttle_is_empty(const struct fr_unwind_throttle *t)
{
	return t->credit_ns <= 0;
}
