// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "unwind/throttle.h"

#define SECOND 1000000000ULL

static struct fr_unwind_throttle t;

/* Works whenever that is allowed, 10 ms at once, with a look every 200 ms. Returns the CPU time in ms. */
static uint64_t work_for(uint64_t *now_ns, uint64_t seconds, uint64_t budget_ppm)
{
	const uint64_t end_ns = *now_ns + seconds * SECOND;
	uint64_t ms = 0;

	for (; *now_ns < end_ns; *now_ns += SECOND / 5) {
		fr_unwind_throttle_fill(&t, *now_ns, budget_ppm);
		for (; !fr_unwind_throttle_is_empty(&t); ms += 10)
			fr_unwind_throttle_spend(&t, SECOND / 100);
	}
	return ms;
}

TEST(after_a_burst_the_work_takes_a_part_of_a_cpu)
{
	uint64_t now_ns = 100 * SECOND;

	fr_unwind_throttle_init(&t, now_ns);
	assert_in_range(work_for(&now_ns, 1, 0), 5000, 5060);
	assert_in_range(work_for(&now_ns, 100, 0), 4950, 5050);
	/* A single table can take a second: it counts afterwards. */
	fr_unwind_throttle_spend(&t, SECOND);
	assert_in_range(work_for(&now_ns, 19, 0), 0, 20);
}

TEST(idle_time_gives_at_most_a_burst)
{
	uint64_t now_ns = 100 * SECOND;

	fr_unwind_throttle_init(&t, now_ns);
	now_ns += 1000000 * SECOND;
	assert_in_range(work_for(&now_ns, 1, 0), 5000, 5060);
}

TEST(the_work_takes_at_most_half_of_the_budget)
{
	uint64_t now_ns = 100 * SECOND;

	fr_unwind_throttle_init(&t, now_ns);
	work_for(&now_ns, 1, 10000);
	assert_in_range(work_for(&now_ns, 100, 10000), 480, 520);
	assert_in_range(work_for(&now_ns, 100, 900000), 4950, 5050);
}
