// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of snapshots: pinned frames (which are not evicted), the reserve (the part of the log that is used
   only while pinned frames stop eviction), chunks that are dropped when the reserve is full, and retained
   snapshots (whose frames are not overwritten). */

#include "records.h"
#include "base/cleanup.h"
#include "history/recover.h"

#include <errno.h>
#include <sys/mman.h>

#define RING (4u << 20)

/* Append and seal chunks of 60 samples, until a chunk is dropped or there are LIMIT chunks. Returns the
   number of chunks that became frames. */
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

TEST(pins_stop_eviction_until_the_reserve_is_full)
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

	/* The reserve has room for some chunks. After these, the newest chunk is dropped. */
	assert_in_range(fill_until_drop(h, &n, 100), 2, 20);
	after = test_stats(h);
	assert_int_equal(after.frames_evicted, before.frames_evicted);
	assert_true(after.used_bytes > before.used_bytes);
	assert_int_equal(after.chunks_dropped, 1);
	assert_int_equal(after.samples_dropped, 60);
	assert_true(after.samples > before.samples);

	/* The snapshot still has all pinned frames. Reading the snapshot unpins its frames, which makes room
	   at once. */
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

TEST(a_snapshot_that_keeps_its_pins_can_be_read_twice)
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

TEST(a_snapshot_of_an_empty_ring_pins_nothing)
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

/* If the samples of a chunk are dropped, the ring makes a frame of its side-band alone. If the ring has no
   room for this frame, the side-band stays in the open chunk. */
TEST(sideband_stays_when_samples_are_dropped)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	uint64_t n = 0, m = 0;
	struct fr_snapshot *s;

	fill_until_drop(h, &n, 20);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	/* The chunks are small, so almost no room is left when the first samples are dropped. */
	for (unsigned i = 0; i < 200; i++) {
		assert_in_range(test_append(h, n, 5, 1000, true), 0, 1);
		n += 5;
		assert_int_equal(test_append_sideband(h, m++, 1, 512, true), 0);
		fr_history_seal(h);
	}
	assert_true(test_stats(h).samples_dropped > 100 * 5);
	assert_int_equal(test_stats(h).sideband_dropped, 0);
	assert_int_equal(test_stats(h).sideband, m);

	/* When the open chunk is also full, side-band is dropped and counted. */
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

struct fixture {
	struct fr_history *h;
	uint64_t n, m, random, evicted;
};

static void on_evicted(void *ctx, const struct fr_frame *frame)
{
	struct fixture *f = ctx;

	assert_int_equal(frame->seq, ++f->evicted);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->random = 11;
	f->h = test_history(RING, on_evicted, f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fr_history_free(f->h);
	free(f);
	return 0;
}

FIXTURE(setup, teardown)

/* Append and seal FRAMES chunks of random sizes. Their bytes cannot be compressed, and some chunks have
 * side-band. The ring must not drop a record. */
static void append(struct fixture *f, unsigned frames)
{
	for (unsigned i = 0; i < frames; i++) {
		for (uint64_t runs = test_between(&f->random, 1, 4); runs; runs--) {
			unsigned count = (unsigned)test_between(&f->random, 1, 60);
			uint32_t size = (uint32_t)test_between(&f->random, 8, 120) * 8;

			assert_int_equal(test_append(f->h, f->n, count, size, true), 0);
			f->n += count;
		}
		if (i % 3 == 0)
			assert_int_equal(test_append_sideband(f->h, f->m++, 1, 96, false), 0);
		assert_int_equal(fr_history_seal(f->h), 0);
	}
}

static struct fr_snapshot *take_snapshot(struct fixture *f)
{
	struct fr_snapshot *s;

	assert_int_equal(fr_history_snapshot(f->h, &s), 0);
	return s;
}

static struct fr_snapshot *retain_all(struct fixture *f)
{
	struct fr_snapshot *s = take_snapshot(f);
	uint64_t lost;

	assert_int_equal(fr_snapshot_retain(s, &lost), 0);
	fr_snapshot_unpin(s);
	return s;
}

/* Check that the samples of S have consecutive numbers, the last of which is END - 1. Returns the number of
   the first sample. */
static uint64_t check_snapshot(struct fr_snapshot *s, uint64_t end)
{
	struct test_contents c = {0};

	test_count_snapshot(&c, s);
	assert_int_equal(c.next[TEST_SAMPLES], end);
	return c.first[TEST_SAMPLES];
}

static uint64_t check_ring(struct fixture *f)
{
	const struct test_contents c = test_read(f->h);

	assert_int_equal(c.next[TEST_SAMPLES], f->n);
	return c.first[TEST_SAMPLES];
}

/* In each turn of the test, the retained frames are at another place of the log (the circular area of the
 * frames): also at its end, and across its end. */
TEST(the_ring_goes_around_a_retained_snapshot)
{
	struct fixture *f = *state;

	append(f, 60);
	for (unsigned round = 0; round < 25; round++) {
		const uint64_t end = f->n;
		struct fr_snapshot *s = retain_all(f);
		uint64_t first, ring_first = 0;

		for (unsigned step = 0; step < 12; step++) {
			append(f, (unsigned)test_between(&f->random, 1, 30));
			fr_snapshot_rewind(s);
			first = check_snapshot(s, end);
			ring_first = check_ring(f);
			assert_true(first < end);
			assert_int_equal(fr_snapshot_evicted_samples(s),
				FR_MAX(FR_MIN(ring_first, end), first) - first);
		}
		assert_true(ring_first >= end); /* the ring has evicted all frames of the snapshot */
		assert_int_equal(test_stats(f->h).samples_dropped, 0);
		assert_true(test_stats(f->h).used_bytes <= RING);
		fr_snapshot_free(s);
		assert_int_equal(test_stats(f->h).pinned_bytes, 0);
		append(f, (unsigned)test_between(&f->random, 1, 40));
		check_ring(f);
	}
}

TEST(the_newest_frames_in_half_of_the_log_are_retained)
{
	struct fixture *f = *state;
	uint64_t lost, frames, bytes, before, all_bytes;
	struct fr_snapshot *s;

	append(f, 100);
	before = test_stats(f->h).samples;
	s = take_snapshot(f);
	fr_snapshot_size(s, &frames, &all_bytes);
	assert_int_equal(fr_snapshot_retain(s, &lost), 0);
	fr_snapshot_size(s, &frames, &bytes);
	assert_in_range(bytes, 256 << 10, RING / 2);
	assert_true(bytes < all_bytes);
	assert_int_equal(test_stats(f->h).samples, before - lost);
	assert_int_equal(f->n - check_snapshot(s, f->n), before - lost);
	fr_snapshot_free(s);
}

/* Frames that a dump has read are no longer pinned. So the ring can evict and overwrite these frames before
 * the dump fails. They can then not be retained. */
TEST(frames_that_were_read_and_evicted_are_lost)
{
	struct fixture *f = *state;
	uint64_t lost, end, total;
	struct fr_snapshot *s;

	append(f, 60);
	end = f->n;
	total = test_stats(f->h).samples;
	s = take_snapshot(f);
	check_snapshot(s, end);
	append(f, 12);
	assert_int_equal(fr_snapshot_retain(s, &lost), 0);
	assert_int_equal(lost, total - (end - check_snapshot(s, end)));
	fr_snapshot_unpin(s);
	fr_snapshot_free(s);
	/* All frames of the snapshot have been evicted, so nothing can be retained. */
	s = take_snapshot(f);
	check_snapshot(s, f->n);
	append(f, 150);
	assert_int_equal(fr_snapshot_retain(s, &lost), 1);
	fr_snapshot_free(s);
}

TEST(only_one_snapshot_is_retained)
{
	struct fixture *f = *state;
	struct fr_snapshot *a, *b;
	uint64_t lost;

	append(f, 10);
	a = retain_all(f);
	b = take_snapshot(f);
	assert_int_equal(fr_snapshot_retain(b, &lost), -EBUSY);
	fr_snapshot_free(b);
	fr_snapshot_free(a);
	append(f, 100);
	check_ring(f);
	/* Frames that another snapshot pins cannot be evicted, so the snapshot cannot be retained. */
	a = take_snapshot(f);
	b = take_snapshot(f);
	assert_int_equal(fr_snapshot_retain(b, &lost), -EBUSY);
	check_snapshot(a, f->n);
	fr_snapshot_free(a);
	fr_snapshot_free(b);
}

TEST(snapshots_that_overlap_do_not_disturb_each_other)
{
	struct fixture *f = *state;
	uint64_t ends[4], frames, bytes;
	struct fr_snapshot *s[4];
	struct fr_frame frame;

	append(f, 20);
	for (unsigned i = 0; i < 4; i++) {
		append(f, 2);
		ends[i] = f->n;
		s[i] = take_snapshot(f);
		(void)fr_snapshot_next(s[i], &frame);
		fr_snapshot_rewind(s[i]);
	}
	fr_snapshot_size(s[3], &frames, &bytes);
	assert_int_equal(test_stats(f->h).pinned_bytes, bytes); /* bytes of several snapshots count once */
	check_snapshot(s[2], ends[2]);
	fr_snapshot_free(s[2]);
	assert_int_equal(test_stats(f->h).pinned_bytes, bytes);
	for (unsigned i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		assert_int_equal(check_snapshot(s[i], ends[i]), 0);
		fr_snapshot_free(s[i]);
	}
	assert_int_equal(test_stats(f->h).pinned_bytes, 0);
	append(f, 100);
	check_ring(f);
}

/* Check that recovery (history/recover.h) finds all frames of the ring. It may also find older frames, which
   have been evicted. If no snapshot is retained (IS_RETAINED is false), the older frames must also be
   consecutive. */
static void check_recovery(struct fixture *f, bool is_retained)
{
	_cleanup_recovery_ struct fr_recovery *r = NULL;
	const struct fr_history_stats stats = test_stats(f->h);
	struct test_contents c = {0};
	struct fr_recovery_stats found;
	struct fr_frame frame;
	void *map = mmap(NULL, RING, PROT_READ, MAP_SHARED, fr_history_fd(f->h), 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(fr_recovery_new(map, RING, &r), 0);
	while (fr_recovery_next(r, &frame) > 0)
		if (frame.seq > f->evicted)
			test_count_frame(&c, &frame);
	assert_int_equal(c.frames, stats.frames);
	assert_int_equal(c.n[TEST_SAMPLES], stats.samples);
	assert_int_equal(c.next[TEST_SAMPLES], f->n);
	fr_recovery_stats(r, &found);
	assert_true(is_retained || found.gaps == 0);
	munmap(map, RING);
}

TEST(recovery_finds_a_ring_with_a_retained_snapshot)
{
	struct fixture *f = *state;
	struct fr_snapshot *s;

	append(f, 60);
	s = retain_all(f);
	for (unsigned i = 0; i < 20; i++) {
		append(f, 9);
		check_ring(f);
		check_recovery(f, true);
	}
	fr_snapshot_free(s);
	check_recovery(f, false);
}
