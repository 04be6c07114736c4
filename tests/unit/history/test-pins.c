// SPDX-License-Identifier: GPL-2.0-or-later

/* Snapshots: what they pin, the reserve, and what is dropped when the reserve is full. */

#include "records.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Append and seal chunks of 60 samples that do not compress, until a drop or LIMIT. Returns how many went in.
 */
static unsigned fill_until_drop(struct fr_history *h, uint64_t *n, unsigned limit)
{
	unsigned chunks = 0;

	for (; chunks < limit; chunks++) {
		assert_int_equal(test_append(h, *n, 60, 1000, true), 0);
		*n += 60;
		if (fr_history_seal(h))
			break;
	}
	return chunks;
}

static void test_pins_stop_eviction_until_the_reserve_is_full(void **state)
{
	struct fr_history *h = test_history(2 << 20, NULL, NULL);
	struct fr_history_stats before, after;
	uint64_t n = 0, frames, bytes;
	struct fr_snapshot *s;
	struct fr_frame f;

	assert_int_equal(fill_until_drop(h, &n, 100), 100);
	before = test_stats(h);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	fr_snapshot_size(s, &frames, &bytes);
	assert_int_equal(frames, before.frames);
	assert_int_equal(test_stats(h).pinned_bytes, bytes);

	/* The reserve takes some chunks, then the newest chunk is dropped. */
	assert_in_range(fill_until_drop(h, &n, 100), 2, 20);
	after = test_stats(h);
	assert_int_equal(after.frames_evicted, before.frames_evicted);
	assert_true(after.used_bytes > before.used_bytes);
	assert_int_equal(after.chunks_dropped, 1);
	assert_int_equal(after.samples_dropped, 60);
	assert_true(after.samples > before.samples);

	/* All pinned frames are there. The walk unpins them, which makes room at once. */
	for (uint64_t i = 0; i < frames; i++) {
		assert_int_equal(fr_snapshot_next(s, &f), 1);
		assert_int_equal(f.seq, before.frames_evicted + 1 + i);
		if (i == 4)
			assert_true(fill_until_drop(h, &n, 2) >= 1);
	}
	assert_int_equal(fr_snapshot_next(s, &f), 0);
	assert_int_equal(fr_snapshot_next(s, &f), 0);
	assert_int_equal(test_stats(h).pinned_bytes, 0);
	assert_int_equal(fill_until_drop(h, &n, 200), 200);
	fr_snapshot_free(s);
	after = test_stats(h);
	assert_int_equal(
		test_read_with_gaps(h).n[TEST_SAMPLES] + after.samples_evicted + after.samples_dropped, n);
	fr_history_free(h);
}

static void test_a_snapshot_that_keeps_its_pins_can_be_read_twice(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	struct test_contents first = {0}, second = {0};
	struct fr_snapshot *s;
	uint64_t n = 0;

	fill_until_drop(h, &n, 20);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	fr_snapshot_keep_pinned(s, true);
	test_count_snapshot(&first, s);
	fill_until_drop(h, &n, 20);
	fr_snapshot_rewind(s);
	fr_snapshot_keep_pinned(s, false);
	test_count_snapshot(&second, s);
	assert_memory_equal(&first, &second, sizeof(first));
	assert_int_equal(fill_until_drop(h, &n, 20), 20);
	fr_snapshot_free(s);
	fr_history_free(h);
}

static void test_a_snapshot_of_an_empty_ring_pins_nothing(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	struct fr_snapshot *s;
	struct fr_frame f;
	uint64_t n = 0;

	assert_int_equal(fr_history_snapshot(h, &s), 0);
	assert_int_equal(fill_until_drop(h, &n, 50), 50);
	assert_int_equal(fr_snapshot_next(s, &f), 0);
	fr_snapshot_free(s);
	fr_history_free(h);
}

/* It goes into frames of its own, and then stays in the open chunk. */
static void test_sideband_stays_when_samples_are_dropped(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	uint64_t n = 0, m = 0;
	struct fr_snapshot *s;

	fill_until_drop(h, &n, 20);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	/* The steps are so small that samples leave almost no room at the end. */
	for (unsigned i = 0; i < 200; i++) {
		assert_in_range(test_append(h, n, 5, 1000, true), 0, 1);
		n += 5;
		assert_int_equal(test_append_sideband(h, m++, 1, 512, true), 0);
		fr_history_seal(h);
	}
	assert_true(test_stats(h).samples_dropped > 100 * 5);
	assert_int_equal(test_stats(h).sideband_dropped, 0);
	assert_int_equal(test_stats(h).sideband, m);

	/* When all of that is full, side-band is dropped and counted. */
	while (test_append_sideband(h, m, 64, 1000, true) == 0)
		m += 64;
	assert_int_equal(test_stats(h).sideband_dropped, 64);
	assert_int_equal(test_stats(h).sideband, m);

	fr_snapshot_free(s);
	assert_int_equal(fr_history_seal(h), 0);
	assert_true(test_stats(h).frames_evicted > 0);
	assert_int_equal(test_read_with_gaps(h).n[TEST_SIDEBAND], test_stats(h).sideband);
	fr_history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pins_stop_eviction_until_the_reserve_is_full),
		cmocka_unit_test(test_a_snapshot_that_keeps_its_pins_can_be_read_twice),
		cmocka_unit_test(test_a_snapshot_of_an_empty_ring_pins_nothing),
		cmocka_unit_test(test_sideband_stays_when_samples_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
