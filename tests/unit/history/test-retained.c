/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Snapshots retained: the ring goes around them for laps, and both are what they should be; and several
 * snapshots that overlap. */

#include "records.h"
#include "base/cleanup.h"
#include "history/recover.h"
#include "history/unpack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <cmocka.h>

#define RING (4u << 20)

struct fixture {
	struct fr_history *h;
	struct fr_unpack *unpack;
	uint8_t *buffer;
	uint64_t n, random, evicted;
};

static void note_evicted(void *ctx, const struct fr_frame *frame)
{
	struct fixture *f = ctx;

	assert_int_equal(frame->seq, f->evicted + 1);
	f->evicted = frame->seq;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->random = 11;
	f->h = test_history(RING, note_evicted, f);
	f->buffer = malloc(fr_history_section_max(f->h));
	*state = f;
	return fr_unpack_new(&f->unpack);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fr_unpack_free(f->unpack);
	free(f->buffer);
	fr_history_free(f->h);
	free(f);
	return 0;
}

/* FRAMES chunks of noise, of many sizes; with side-band in some. Nothing may be dropped. */
static void append(struct fixture *f, unsigned frames)
{
	for (unsigned i = 0; i < frames; i++) {
		unsigned runs = (unsigned)test_between(&f->random, 1, 4);

		for (unsigned k = 0; k < runs; k++) {
			unsigned count = (unsigned)test_between(&f->random, 1, 60);

			assert_int_equal(test_append(f->h, f->n, count,
						 (uint32_t)test_between(&f->random, 8, 120) * 8, true),
				0);
			f->n += count;
		}
		if (i % 3 == 0)
			assert_int_equal(test_append_sideband(f->h, f->n, 1, 96, false), 0);
		assert_int_equal(fr_history_seal(f->h), 0);
	}
}

/* All samples of S follow each other without a gap, whole. The first, and behind the last. */
static void check(struct fixture *f, struct fr_snapshot *s, uint64_t *ret_first, uint64_t *ret_end)
{
	const struct perf_event_header *record;
	uint64_t next = UINT64_MAX;
	struct fr_frame frame;

	while (fr_snapshot_next(s, &frame)) {
		ssize_t len = fr_section_decompress(
			f->unpack, frame.samples, frame.samples_len, f->buffer, fr_history_section_max(f->h));
		struct fr_section_iter it = fr_section_iter(f->buffer, (size_t)len);

		assert_true(len >= 0);
		while ((record = fr_section_next(&it))) {
			uint64_t n = test_check_record(record);

			if (next == UINT64_MAX)
				*ret_first = n;
			else
				assert_int_equal(n, next);
			next = n + 1;
		}
		assert_ptr_equal(it.at, it.end);
	}
	*ret_end = next;
}

static void check_ring(struct fixture *f, uint64_t *ret_first)
{
	struct fr_snapshot *s;
	uint64_t end;

	assert_int_equal(fr_history_snapshot(f->h, &s), 0);
	check(f, s, ret_first, &end);
	assert_int_equal(end, f->n);
	fr_snapshot_free(s);
}

static struct fr_history_stats stats_of(struct fixture *f)
{
	struct fr_history_stats stats;

	fr_history_stats(f->h, &stats);
	return stats;
}

/* Retain what there is, go on for laps, look at both at every step; again from wherever the log stands then,
   so that holes are met at its end and across it. */
static void the_ring_goes_around_for_laps(void **state)
{
	struct fixture *f = *state;

	append(f, 60);
	for (unsigned round = 0; round < 25; round++) {
		uint64_t lost, end_at = f->n, first, end, ring_first = 0;
		struct fr_snapshot *s;

		assert_int_equal(fr_history_snapshot(f->h, &s), 0);
		assert_int_equal(fr_snapshot_retain(s, &lost), 0);
		fr_snapshot_unpin(s);
		for (unsigned step = 0; step < 12; step++) {
			append(f, (unsigned)test_between(&f->random, 1, 30));
			fr_snapshot_rewind(s);
			check(f, s, &first, &end);
			assert_int_equal(end, end_at);
			assert_true(first < end);
			check_ring(f, &ring_first);
			assert_int_equal(fr_snapshot_evicted_samples(s),
				FR_MAX(FR_MIN(ring_first, end), first) - first);
		}
		assert_true(ring_first >= end_at); /* the laps were laps */
		assert_int_equal(stats_of(f).samples_dropped, 0);
		assert_true(stats_of(f).used_bytes <= RING);
		fr_snapshot_free(s);
		assert_int_equal(stats_of(f).pinned_bytes, 0);
		append(f, (unsigned)test_between(&f->random, 1, 40));
		check_ring(f, &ring_first);
	}
}

/* What is lost is said, and is the oldest; what stays is at most half of the log. */
static void the_newest_half_stays(void **state)
{
	struct fixture *f = *state;
	uint64_t lost, first, end, frames, bytes, before, held;
	struct fr_snapshot *s;

	append(f, 100);
	before = stats_of(f).samples;
	assert_int_equal(fr_history_snapshot(f->h, &s), 0);
	fr_snapshot_size(s, &frames, &held);
	assert_int_equal(fr_snapshot_retain(s, &lost), 0);
	fr_snapshot_size(s, &frames, &bytes);
	assert_in_range(bytes, 256 << 10, RING / 2);
	assert_true(bytes < held);
	assert_int_equal(stats_of(f).samples, before - lost);
	check(f, s, &first, &end);
	assert_int_equal(end, f->n);
	assert_int_equal(end - first, before - lost);
	fr_snapshot_free(s);
}

/* A dump that had been written in part: what recording took from it meanwhile is gone, the rest is not. */
static void what_was_read_and_evicted_is_lost(void **state)
{
	struct fixture *f = *state;
	uint64_t lost, first, end, end_at, total;
	struct fr_snapshot *s;
	struct fr_frame frame;

	append(f, 60);
	end_at = f->n;
	total = stats_of(f).samples;
	assert_int_equal(fr_history_snapshot(f->h, &s), 0);
	while (fr_snapshot_next(s, &frame))
		;
	append(f, 12);
	assert_int_equal(fr_snapshot_retain(s, &lost), 0);
	check(f, s, &first, &end);
	assert_int_equal(end, end_at);
	assert_int_equal(lost, total - (end - first));
	fr_snapshot_unpin(s);
	fr_snapshot_free(s);
	/* And where nothing is left, that is said. */
	assert_int_equal(fr_history_snapshot(f->h, &s), 0);
	while (fr_snapshot_next(s, &frame))
		;
	append(f, 150);
	assert_int_equal(fr_snapshot_retain(s, &lost), 1);
	fr_snapshot_free(s);
}

static void one_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct fr_snapshot *a, *b;
	uint64_t lost, first;

	append(f, 10);
	assert_int_equal(fr_history_snapshot(f->h, &a), 0);
	assert_int_equal(fr_history_snapshot(f->h, &b), 0);
	assert_int_equal(fr_snapshot_retain(a, &lost), 0);
	fr_snapshot_unpin(a);
	assert_int_equal(fr_snapshot_retain(b, &lost), -EBUSY);
	fr_snapshot_free(b);
	fr_snapshot_free(a);
	append(f, 100);
	check_ring(f, &first);
	/* What another one pins does not leave the ring. */
	assert_int_equal(fr_history_snapshot(f->h, &a), 0);
	assert_int_equal(fr_history_snapshot(f->h, &b), 0);
	assert_int_equal(fr_snapshot_retain(b, &lost), -EBUSY);
	check(f, a, &first, &lost);
	assert_int_equal(lost, f->n);
	fr_snapshot_free(a);
	fr_snapshot_free(b);
}

/* Snapshots that overlap share what they pin; each reads its own, whatever becomes of the others. */
static void snapshots_overlap(void **state)
{
	struct fixture *f = *state;
	uint64_t ends[4], first, end, frames, bytes;
	struct fr_snapshot *s[4];
	struct fr_frame frame;

	append(f, 20);
	for (unsigned i = 0; i < 4; i++) {
		append(f, 2);
		ends[i] = f->n;
		assert_int_equal(fr_history_snapshot(f->h, &s[i]), 0);
		(void)fr_snapshot_next(s[i], &frame);
		fr_snapshot_rewind(s[i]);
	}
	fr_snapshot_size(s[3], &frames, &bytes);
	assert_int_equal(stats_of(f).pinned_bytes, bytes); /* not four times */
	check(f, s[2], &first, &end);
	assert_int_equal(end, ends[2]);
	fr_snapshot_free(s[2]);
	assert_int_equal(stats_of(f).pinned_bytes, bytes);
	for (unsigned i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		check(f, s[i], &first, &end);
		assert_int_equal(first, 0);
		assert_int_equal(end, ends[i]);
		fr_snapshot_free(s[i]);
	}
	assert_int_equal(stats_of(f).pinned_bytes, 0);
	append(f, 100);
	check_ring(f, &first);
}

/* What a crash would find: every frame of the ring, in order, while a retained snapshot is in it and after.
 */
static void check_recovery(struct fixture *f, uint64_t ring_first)
{
	_cleanup_recovery_ struct fr_recovery *r = NULL;
	const struct perf_event_header *record;
	uint64_t next = UINT64_MAX;
	struct fr_frame frame;
	void *map = mmap(NULL, RING, PROT_READ, MAP_SHARED, fr_history_fd(f->h), 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(fr_recovery_new(map, RING, &r), 0);
	while (fr_recovery_next(r, &frame) > 0) {
		ssize_t len = fr_section_decompress(
			f->unpack, frame.samples, frame.samples_len, f->buffer, fr_history_section_max(f->h));
		struct fr_section_iter it = fr_section_iter(f->buffer, (size_t)len);

		while ((record = fr_section_next(&it))) {
			uint64_t n = test_check_record(record);

			if (n < ring_first)
				continue;
			assert_int_equal(n, next == UINT64_MAX ? ring_first : next);
			next = n + 1;
		}
	}
	assert_int_equal(next, f->n);
	munmap(map, RING);
}

static void a_crash_finds_the_ring(void **state)
{
	struct fixture *f = *state;
	struct fr_snapshot *s;
	uint64_t lost, first;

	append(f, 60);
	assert_int_equal(fr_history_snapshot(f->h, &s), 0);
	assert_int_equal(fr_snapshot_retain(s, &lost), 0);
	fr_snapshot_unpin(s);
	for (unsigned i = 0; i < 20; i++) {
		append(f, 9);
		check_ring(f, &first);
		check_recovery(f, first);
	}
	fr_snapshot_free(s);
	check_recovery(f, first);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_ring_goes_around_for_laps),
		TEST(the_newest_half_stays),
		TEST(what_was_read_and_evicted_is_lost),
		TEST(one_at_a_time),
		TEST(snapshots_overlap),
		TEST(a_crash_finds_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
