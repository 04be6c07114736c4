// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the CPU budget (CPUBudget=), with simulated times and CPU times. The recorder divides its sampling
   frequencies by a divisor, which a step changes. */
#include "../unit.h"
#include "recorder/budget.h"

#define SEC 1000000000ULL
#define PERCENT 10000 /* a percent of a CPU, in ppm */

struct machine {
	struct fr_budget b;
	uint64_t now_ns, cpu_ns;
};

static struct machine start(uint64_t ppm, unsigned divisor_max)
{
	struct machine m = {.now_ns = 1000 * SEC, .cpu_ns = 7 * SEC};

	fr_budget_init(&m.b, ppm, divisor_max);
	assert_int_equal(fr_budget_tick(&m.b, m.now_ns, m.cpu_ns), FR_BUDGET_STAY);
	return m;
}

/* Let half of a window pass: five seconds, in which the process uses PPM of a CPU. */
static enum fr_budget_verdict half(struct machine *m, uint64_t ppm)
{
	m->now_ns += 5 * SEC;
	m->cpu_ns += 5 * SEC / 1000000 * ppm;
	return fr_budget_tick(&m->b, m->now_ns, m->cpu_ns);
}

/* Let a window of ten seconds pass. Check that there is no step after its first half. Returns the verdict at
   its end. */
static enum fr_budget_verdict window(struct machine *m, uint64_t ppm)
{
	assert_int_equal(half(m, ppm), FR_BUDGET_STAY);
	return half(m, ppm);
}

static void expect(struct machine *m, unsigned windows, uint64_t ppm, enum fr_budget_verdict verdict)
{
	while (windows--)
		assert_int_equal(window(m, ppm), verdict);
}

TEST(no_budget)
{
	struct machine m = start(0, 16);

	for (int i = 0; i < 20; i++)
		assert_int_equal(half(&m, 900000), FR_BUDGET_STAY);
	assert_int_equal(m.b.divisor, 1);
}

TEST(steps_down_to_the_last)
{
	struct machine m = start(1 * PERCENT, 16);

	for (unsigned divisor = 2; divisor <= 16; divisor *= 2) {
		assert_int_equal(window(&m, 20 * PERCENT), FR_BUDGET_DOWN);
		assert_int_equal(m.b.divisor, divisor);
		assert_in_range(m.b.used_ppm, 20 * PERCENT - 10, 20 * PERCENT + 10);
	}
	/* EXHAUSTED is returned only once. */
	assert_int_equal(window(&m, 20 * PERCENT), FR_BUDGET_EXHAUSTED);
	expect(&m, 10, 20 * PERCENT, FR_BUDGET_STAY);
	assert_int_equal(m.b.divisor, 16);
}

TEST(steps_up_after_a_quiet_minute)
{
	struct machine m = start(2 * PERCENT, 16);

	expect(&m, 2, 3 * PERCENT, FR_BUDGET_DOWN);
	for (int step = 2; step > 0; step--) {
		expect(&m, 5, PERCENT, FR_BUDGET_STAY);
		assert_int_equal(window(&m, PERCENT), FR_BUDGET_UP);
		assert_int_equal(m.b.divisor, step);
	}
	expect(&m, 20, PERCENT, FR_BUDGET_STAY);
	assert_int_equal(m.b.divisor, 1);
}

/* There is no step while the cost is between half of the budget and the whole budget. A minute is quiet only
 * if each of its windows is quiet. */
TEST(hysteresis)
{
	struct machine m = start(2 * PERCENT, 16);

	assert_int_equal(window(&m, 3 * PERCENT), FR_BUDGET_DOWN);
	expect(&m, 100, PERCENT + PERCENT / 2, FR_BUDGET_STAY);
	for (int n = 0; n < 5; n++) {
		expect(&m, 5, PERCENT / 2, FR_BUDGET_STAY);
		assert_int_equal(window(&m, PERCENT + PERCENT / 2), FR_BUDGET_STAY);
	}
	assert_int_equal(m.b.divisor, 2);
}

/* The cost is proportional to the frequency. The divisor reaches a value and keeps it. It does not
   oscillate. */
TEST(settles)
{
	const uint64_t full[] = {PERCENT, 3 * PERCENT, 5 * PERCENT, 9 * PERCENT, 15 * PERCENT, 33 * PERCENT};

	for (size_t k = 0; k < sizeof(full) / sizeof(*full); k++) {
		struct machine m = start(2 * PERCENT, 16);
		unsigned ups = 0, downs = 0;

		for (int i = 0; i < 1000; i++) {
			const enum fr_budget_verdict v = window(&m, full[k] / m.b.divisor);

			ups += v == FR_BUDGET_UP;
			downs += v == FR_BUDGET_DOWN;
		}
		assert_in_range(ups, 0, 1);
		assert_in_range(downs, 0, 5);
		assert_true(m.b.divisor == 16 || full[k] / m.b.divisor <= 2 * PERCENT);
	}
}

TEST(nothing_to_step)
{
	struct machine m = start(1 * PERCENT, 1);

	assert_int_equal(window(&m, 2 * PERCENT), FR_BUDGET_EXHAUSTED);
	assert_int_equal(window(&m, 2 * PERCENT), FR_BUDGET_STAY);
	assert_int_equal(m.b.divisor, 1);
	/* After a quiet minute, EXHAUSTED is returned again. */
	expect(&m, 7, 0, FR_BUDGET_STAY);
	assert_int_equal(window(&m, 2 * PERCENT), FR_BUDGET_EXHAUSTED);
}

TEST(failed_step_is_tried_again)
{
	struct machine m = start(1 * PERCENT, 16);

	assert_int_equal(window(&m, 2 * PERCENT), FR_BUDGET_DOWN);
	m.b.divisor = 1;
	assert_int_equal(window(&m, 2 * PERCENT), FR_BUDGET_DOWN);
	assert_int_equal(m.b.divisor, 2);
}

TEST(another_budget)
{
	struct machine m = start(1 * PERCENT, 16);

	assert_int_equal(window(&m, 2 * PERCENT), FR_BUDGET_DOWN);
	assert_int_equal(fr_budget_change(&m.b, 1 * PERCENT), FR_BUDGET_STAY);
	assert_int_equal(m.b.divisor, 2);
	assert_int_equal(fr_budget_change(&m.b, 5 * PERCENT), FR_BUDGET_STAY);
	assert_int_equal(m.b.divisor, 2);
	assert_int_equal(fr_budget_change(&m.b, 0), FR_BUDGET_UP);
	assert_int_equal(m.b.divisor, 1);
	assert_int_equal(fr_budget_change(&m.b, 1 * PERCENT), FR_BUDGET_STAY);
}
