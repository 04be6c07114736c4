// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the conversion from the processor's counter to CLOCK_MONOTONIC. */
#include "../unit.h"
#include "capture/aux_clock.h"
#include "base/clock.h"

#include <stdlib.h>
#include <unistd.h>

/* As perf converts (tsc_to_perf_time() in tools/perf/util/tsc.c). */
static uint64_t convert(const struct perf_event_mmap_page *p, uint64_t counter)
{
	const uint64_t whole = counter >> p->time_shift, rest = counter & ((1ULL << p->time_shift) - 1);

	return p->time_zero + whole * p->time_mult + (rest * p->time_mult >> p->time_shift);
}

/* A counter of 3 GHz that began 40 days before the machine's clock: the products overflow. */
#define COUNTER(ns) ((ns)*3 + 10368000000000000ULL)

TEST(the_conversion_is_exact_around_the_dump)
{
	const struct fr_aux_clock first = {COUNTER(1000), 1000}, now = {COUNTER(60000000000), 60000000000};
	const struct perf_event_mmap_page page = {.cap_user_time = 1, .time_mult = 1, .time_shift = 10};
	struct perf_event_mmap_page p;

	fr_aux_clock_convert(&page, &first, &now, &p);
	assert_int_equal(p.cap_user_time_zero, 1);
	for (uint64_t ns = 50000000000; ns <= 61000000000; ns += 999999)
		assert_true(llabs((long long)(convert(&p, COUNTER(ns)) - ns)) < 100);
}

TEST(soon_after_the_opening_the_kernels_speed_is_taken)
{
	const struct fr_aux_clock first = {1000, 1000}, now = {900000000, 100001000};
	const struct perf_event_mmap_page page = {.cap_user_time = 1, .time_mult = 256, .time_shift = 9};
	struct perf_event_mmap_page p;

	fr_aux_clock_convert(&page, &first, &now, &p);
	assert_int_equal(p.time_mult, 256);
	assert_int_equal(p.time_shift, 9);
	assert_int_equal(convert(&p, 900000000), 100001000);
	assert_int_equal(convert(&p, 899998000), 100000000);
}

TEST(without_a_stable_counter_there_is_no_conversion)
{
	const struct fr_aux_clock first = {1000, 1000}, now = {COUNTER(60000000000), 60000000000},
				  none = {0, 60000000000};
	struct perf_event_mmap_page page = {.time_mult = 256, .time_shift = 9}, p;

	fr_aux_clock_convert(&page, &first, &now, &p);
	assert_int_equal(p.cap_user_time_zero, 0);
	page.cap_user_time = 1;
	fr_aux_clock_convert(&page, &(struct fr_aux_clock){0, 1000}, &none, &p);
	assert_int_equal(p.cap_user_time_zero, 0);
}

TEST(the_clocks_of_this_machine)
{
	const struct perf_event_mmap_page page = {.cap_user_time = 1, .time_mult = 256, .time_shift = 9};
	struct fr_aux_clock first, now, later;
	struct perf_event_mmap_page p;
	long long error;

	fr_aux_clock_read(&first);
	if (!first.counter)
		skip();
	usleep(1200000);
	fr_aux_clock_read(&now);
	fr_aux_clock_convert(&page, &first, &now, &p);
	usleep(50000);
	fr_aux_clock_read(&later);
	error = llabs((long long)(convert(&p, later.counter) - later.time_ns));
	assert_true(error < 100000);
	assert_true(llabs((long long)(convert(&p, first.counter) - first.time_ns)) < 100000);
}
