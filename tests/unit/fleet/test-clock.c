// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/clock.h"
#include "fleet/clock.h"
#include "random.h"

#define SECOND FR_NSEC_PER_SEC
#define MS FR_NSEC_PER_MSEC
#define FLEET (1795899446ULL * SECOND)

static struct fr_fleet_clock get(const struct fr_fleet_clock_estimator *e, uint64_t now_ns)
{
	struct fr_fleet_clock c;

	fr_fleet_clock_get(e, now_ns, FLEET, &c);
	return c;
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

TEST(without_a_measurement_the_error_is_unknown)
{
	struct fr_fleet_clock_estimator e = {0};

	assert_true(get(&e, SECOND).error_ns == UINT64_MAX);
	fr_fleet_clock_add(&e, 2, 1, FLEET); /* an impossible measurement */
	assert_true(get(&e, SECOND).error_ns == UINT64_MAX);
	fr_fleet_clock_add(&e, SECOND, SECOND + MS, FLEET);
	assert_true(get(&e, SECOND).error_ns < MS);
	fr_fleet_clock_reset(&e);
	assert_true(get(&e, SECOND).error_ns == UINT64_MAX);
}

TEST(one_measurement_is_exact_to_half_of_the_round_trip)
{
	struct fr_fleet_clock_estimator e = {0};
	struct fr_fleet_clock c;

	fr_fleet_clock_add(&e, 10 * SECOND, 10 * SECOND + 2 * MS, FLEET);
	c = get(&e, 10 * SECOND + 2 * MS);
	assert_in_range(c.error_ns, MS, MS + 1000);
	assert_true(distance(c.offset_ns, (int64_t)(FLEET - 10 * SECOND - MS)) <= 1);
	assert_int_equal(c.measured_ns, 10 * SECOND + 2 * MS);
}

TEST(a_measurement_gets_less_exact_with_time)
{
	struct fr_fleet_clock_estimator e = {0};

	fr_fleet_clock_add(&e, 10 * SECOND, 10 * SECOND, FLEET);
	assert_in_range(get(&e, 10 * SECOND).error_ns, 0, 1);
	assert_in_range(get(&e, 1010 * SECOND).error_ns, 250 * MS, 250 * MS + 1);
	/* A time before the measurement, too. */
	assert_in_range(get(&e, 0).error_ns, 2500000, 2500001);
}

TEST(a_slow_measurement_does_not_spoil_a_good_one)
{
	struct fr_fleet_clock_estimator e = {0};

	fr_fleet_clock_add(&e, 10 * SECOND, 10 * SECOND + MS, FLEET);
	fr_fleet_clock_add(&e, 11 * SECOND, 12 * SECOND, FLEET + SECOND + 500 * MS);
	assert_true(get(&e, 12 * SECOND).error_ns < 2 * MS);
}

TEST(the_newest_measurements_win_when_the_broker_changes_its_clock)
{
	struct fr_fleet_clock_estimator e = {0};
	struct fr_fleet_clock c;

	for (uint64_t i = 0; i < 10; i++)
		fr_fleet_clock_add(&e, i * SECOND, i * SECOND + MS, FLEET + i * SECOND);
	fr_fleet_clock_add(&e, 10 * SECOND, 10 * SECOND + MS, FLEET + 3610 * SECOND);
	fr_fleet_clock_add(&e, 11 * SECOND, 11 * SECOND + MS, FLEET + 3611 * SECOND);
	c = get(&e, 11 * SECOND + MS);
	assert_true(distance(c.offset_ns, (int64_t)(FLEET + 3600 * SECOND)) <= MS);
	assert_true(c.error_ns <= MS);
}

TEST(wall_offset_is_fleet_time_minus_wall_time)
{
	struct fr_fleet_clock_estimator e = {0};
	struct fr_fleet_clock c;

	fr_fleet_clock_add(&e, SECOND, SECOND, FLEET);
	fr_fleet_clock_get(&e, SECOND, FLEET + 3600 * SECOND, &c);
	assert_true(distance(c.wall_offset_ns, -3600 * (int64_t)SECOND) <= 1);
}

/* The true offset is within the error, for any round trips and any drift that the estimator allows. */
TEST(the_error_holds_for_random_machines)
{
	for (int machine = 0; machine < 500; machine++) {
		struct fr_fleet_clock_estimator e = {0};
		const int64_t ppm =
			(int64_t)random_up_to(2 * FR_FLEET_CLOCK_DRIFT_PPM) - FR_FLEET_CLOCK_DRIFT_PPM;
		const uint64_t start = random_up_to(1000 * SECOND);
		uint64_t now = start;
		uint64_t fleet = FLEET;

		for (uint64_t n = 1 + random_up_to(40); n > 0; n--) {
			const uint64_t before = now, forth = random_up_to(5 * MS),
				       back = random_up_to(5 * MS);

			now += forth;
			fleet = FLEET + (now - start) + (uint64_t)((int64_t)(now - start) * ppm / 1000000);
			fr_fleet_clock_add(&e, before, now + back, fleet);
			now += back + random_up_to(60 * SECOND);
		}
		fleet = FLEET + (now - start) + (uint64_t)((int64_t)(now - start) * ppm / 1000000);
		{
			struct fr_fleet_clock c = get(&e, now);
			const uint64_t there = fr_fleet_clock_to_fleet(&c, now);

			if (distance((int64_t)there, (int64_t)fleet) > c.error_ns + 2)
				fail_msg("machine %d: off by %llu, error %llu", machine,
					(unsigned long long)distance((int64_t)there, (int64_t)fleet),
					(unsigned long long)c.error_ns);
			assert_int_equal(fr_fleet_clock_to_monotonic(&c, there), now);
		}
	}
}

TEST(conversions_saturate)
{
	const struct fr_fleet_clock plus = {.offset_ns = INT64_MAX}, minus = {.offset_ns = INT64_MIN};

	assert_true(fr_fleet_clock_to_fleet(&plus, UINT64_MAX) == UINT64_MAX);
	assert_int_equal(fr_fleet_clock_to_monotonic(&plus, 1), 0);
	assert_int_equal(fr_fleet_clock_to_fleet(&minus, 1), 0);
	assert_true(fr_fleet_clock_to_monotonic(&minus, UINT64_MAX) == UINT64_MAX);
}

/* A hostile broker can give any time. The sanitizers see an overflow. */
TEST(any_numbers_are_accepted)
{
	for (int i = 0; i < 5000; i++) {
		struct fr_fleet_clock_estimator e = {0};
		struct fr_fleet_clock c;

		for (uint64_t n = random_up_to(20); n > 0; n--)
			fr_fleet_clock_add(&e, random_magnitude(), random_magnitude(), random_magnitude());
		fr_fleet_clock_get(&e, random_magnitude(), random_magnitude(), &c);
		assert_true((c.error_ns == UINT64_MAX) == (e.n == 0));
		(void)fr_fleet_clock_to_fleet(&c, random_magnitude());
		(void)fr_fleet_clock_to_monotonic(&c, random_magnitude());
	}
}
