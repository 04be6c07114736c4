// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of Every= with the real clock. */
#include "heard.h"

TEST(missed_expirations_count_as_one)
{
	_cleanup_heard_ struct heard h = {0};
	uint64_t first;

	heard_init(&h, FR_TRIGGER_TIMER);
	h.config.every_ns = 200 * MS;
	heard_arm(&h);
	usleep(1100 * 1000);
	heard_wait(&h, 1);
	first = h.last.time_ns;
	/* The next two expirations are at multiples of the interval. Timers count in microseconds. */
	heard_wait(&h, 3);
	assert_int_equal(h.n, 3);
	assert_true(h.last.time_ns - first + FR_NSEC_PER_USEC >= h.config.every_ns);
}

TEST(times_out_of_range_are_refused)
{
	static const uint64_t bad[] = {0, 1, UINT64_MAX};
	_cleanup_heard_ struct heard h = {0};

	heard_init(&h, FR_TRIGGER_TIMER);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		h.config.every_ns = bad[i];
		heard_refused(&h, -EINVAL, "Every=");
		assert_int_equal(fr_source_timer.check(&h.config, NULL), -EINVAL);
	}
}
