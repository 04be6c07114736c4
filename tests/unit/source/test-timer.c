// SPDX-License-Identifier: GPL-2.0-or-later
/* Every= on the real clock. */
#include "heard.h"

#include <errno.h>

static void test_fires_on_its_grid(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_TIMER);
	uint64_t begin = fr_monotonic_ns();
	struct fr_source_stats stats;
	struct fr_source *s;
	struct heard h;
	int trigger;

	heard_init(&h);
	config.every_ns = 100 * FR_NSEC_PER_MSEC;
	assert_int_equal(fr_source_open(&fr_source_timer, &h.env, &config, &trigger, &s, NULL), 0);
	assert_int_equal(h.n, 0);
	heard_wait(&h, 1);
	assert_int_equal(h.n, 1);
	assert_ptr_equal(h.trigger, &trigger);
	assert_true(h.last.time_ns - begin >= config.every_ns);
	assert_string_equal(h.last.reason, "every 100ms");
	assert_int_equal(h.last.pid, 0);
	assert_int_equal(h.last.cpu, -1);
	heard_wait(&h, 4);
	assert_int_equal(h.n, 4);
	assert_true(h.last.time_ns - begin >= 4 * config.every_ns);
	fr_source_get_stats(s, &stats);
	assert_int_equal(stats.fired, 4);
	assert_int_equal(stats.last_ns, h.last.time_ns);
	fr_source_close(s);
	heard_run(&h, 250, 0);
	assert_int_equal(h.n, 4);
	heard_deinit(&h);
}

static void test_what_was_missed_is_one(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_TIMER);
	struct fr_source *s;
	struct heard h;
	uint64_t first;

	heard_init(&h);
	config.every_ns = 200 * FR_NSEC_PER_MSEC;
	assert_int_equal(fr_source_open(&fr_source_timer, &h.env, &config, NULL, &s, NULL), 0);
	usleep(1100 * 1000);
	heard_wait(&h, 1);
	first = h.last.time_ns;
	/* The second comes with the next line of the grid, the third with the one after it: timers count in
	   microseconds. */
	heard_wait(&h, 3);
	assert_int_equal(h.n, 3);
	assert_true(h.last.time_ns - first + FR_NSEC_PER_USEC >= config.every_ns);
	fr_source_close(s);
	heard_deinit(&h);
}

static void test_refuses(void **state)
{
	static const uint64_t bad[] = {0, 1, UINT64_MAX};
	struct fr_trigger_config config = heard_config(FR_TRIGGER_TIMER);
	struct heard h;

	heard_init(&h);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config.every_ns = bad[i];
		heard_refused(&h, &fr_source_timer, &config, -EINVAL, "Every=");
		assert_int_equal(fr_source_timer.check(&config, NULL), -EINVAL);
	}
	heard_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fires_on_its_grid),
		cmocka_unit_test(test_what_was_missed_is_one),
		cmocka_unit_test(test_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
