// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of recovery, which reads the image of a ring (the content of its memfd) after its recorder has ended.
   The image can be complete, truncated, damaged or forged. */

#include "records.h"
#include "base/cleanup.h"
#include "base/crc32c.h"
#include "history/recover.h"
#include "history/unpack.h"

#include <string.h>
#include <unistd.h>

/* Returns a copy of the image. The memory of the copy has exactly the length of the image, so that a
   sanitizer finds each access after the end. */
static uint8_t *copy_image(struct fr_history *h, size_t *ret_len)
{
	const size_t len = fr_history_size(h);
	uint8_t *copy = malloc(len);

	assert_non_null(copy);
	assert_int_equal(pread(fr_history_fd(h), copy, len, 0), len);
	*ret_len = len;
	return copy;
}

/* Read a valid image, and count the records of its frames in RET. Returns the number of records in the open
 * chunk (records that are not yet in a frame). */
static uint64_t recover_all(
	const void *image, size_t len, struct test_contents *ret, struct fr_recovery_stats *ret_stats)
{
	_cleanup_recovery_ struct fr_recovery *r = NULL;
	struct fr_recovered_open open;
	struct fr_frame f;
	uint64_t n;

	*ret = (struct test_contents){0};
	assert_int_equal(fr_recovery_new(image, len, &r), 0);
	while (fr_recovery_next(r, &f))
		test_count_frame(ret, &f);
	n = ret->n[0] + ret->n[1];
	fr_recovery_open_chunk(r, &open);
	test_count_records(ret, open.sideband, open.sideband_len);
	test_count_records(ret, open.samples, open.samples_len);
	fr_recovery_stats(r, ret_stats);
	return ret->n[0] + ret->n[1] - n;
}

static void append_some(struct fr_history *h, uint64_t *n, uint64_t *m, uint64_t *random)
{
	unsigned count = (unsigned)test_between(random, 1, 100);

	test_append(h, *n, count, (uint32_t)test_between(random, 8, 80) * 8, *n % 3 == 0);
	*n += count;
	test_append_sideband(h, (*m)++, 1, 120, false);
}

TEST(all_appended_records_are_recovered)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	uint64_t n = 0, m = 0, random = 21;

	for (unsigned i = 0; i < 3000; i++) {
		struct fr_recovery_stats stats;
		struct test_contents c;
		size_t len;

		append_some(h, &n, &m, &random);
		if (i % 5 == 0)
			fr_history_seal(h);
		if (i % 97)
			continue;
		_cleanup_free_ uint8_t *image = copy_image(h, &len);

		recover_all(image, len, &c, &stats);
		assert_true(stats.header_ok);
		assert_int_equal(stats.gaps, 0);
		assert_int_equal(c.next[TEST_SAMPLES], n);
		assert_int_equal(c.next[TEST_SIDEBAND], m);
		/* Recovery also finds frames that have been evicted but not yet overwritten. */
		assert_true(c.n[TEST_SAMPLES] >= test_stats(h).samples);
		assert_true(stats.frames >= test_stats(h).frames);
	}
	fr_history_free(h);
}

/* open_seq is the number of the frame that the open chunk becomes. If the process is killed after it has
   written a frame, but before it has written the new open_seq, the image has the records twice: in the frame
   and in the open chunk. Recovery returns each record once. */
TEST(a_chunk_that_is_a_frame_already_counts_once)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	struct fr_recovery_stats stats;
	struct fr_image_header *i;
	struct test_contents c;
	uint64_t fill;
	size_t len;

	test_append(h, 0, 10, 80, false);
	test_append_sideband(h, 0, 5, 80, false);
	_cleanup_free_ uint8_t *before = copy_image(h, &len);
	fill = ((struct fr_image_header *)before)->samples_fill;
	assert_int_equal(recover_all(before, len, &c, &stats), 15);

	fr_history_seal(h);
	_cleanup_free_ uint8_t *after = copy_image(h, &len);
	i = (struct fr_image_header *)after;
	assert_int_equal(i->open_seq, 2);
	i->open_seq = 1;
	i->samples_fill = fill;
	assert_int_equal(recover_all(after, len, &c, &stats), 0);
	assert_int_equal(c.n[TEST_SAMPLES], 10);
	assert_int_equal(c.n[TEST_SIDEBAND], 5);
	fr_history_free(h);
}

static void ignore_record(void *ctx, const struct perf_event_header *record)
{
}

static void walk_open(const void *records, size_t len)
{
	struct fr_record_iter it = fr_record_iter(records, len);

	while (len && fr_record_next(&it))
		;
}

/* Read all frames that recovery finds in a damaged image. Returns the number of frames. */
static uint64_t read_damaged(const uint8_t *image, size_t len)
{
	_cleanup_recovery_ struct fr_recovery *r = NULL;
	uint64_t last_seq = 0, frames = 0;
	struct fr_recovery_stats stats;
	struct fr_recovered_open open;
	struct fr_frame f;

	assert_int_equal(fr_recovery_new(image, len, &r), 0);
	for (; fr_recovery_next(r, &f); frames++) {
		assert_true(frames == 0 || f.seq > last_seq);
		last_seq = f.seq;
		assert_true((const uint8_t *)f.sideband >= image);
		assert_true((const uint8_t *)f.samples + f.samples_len <= image + len);
		(void)test_walk_section(&f, TEST_SIDEBAND, ignore_record, NULL);
		(void)test_walk_section(&f, TEST_SAMPLES, ignore_record, NULL);
	}
	fr_recovery_open_chunk(r, &open);
	walk_open(open.sideband, open.sideband_len);
	walk_open(open.samples, open.samples_len);
	fr_recovery_stats(r, &stats);
	assert_int_equal(stats.frames, frames);
	return frames;
}

/* Make the image of a small ring. */
static uint8_t *make_image(size_t *ret_len, uint64_t *ret_frames)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	uint64_t n = 0, m = 0, random = 4;
	uint8_t *image;

	for (unsigned i = 0; i < 200; i++) {
		append_some(h, &n, &m, &random);
		if (i % 6 == 0)
			fr_history_seal(h);
	}
	image = copy_image(h, ret_len);
	fr_history_free(h);
	*ret_frames = read_damaged(image, *ret_len);
	assert_true(*ret_frames > 20);
	return image;
}

TEST(a_flipped_bit_costs_at_most_its_frame)
{
	uint64_t random = 99, whole, least = UINT64_MAX;
	size_t len;
	_cleanup_free_ uint8_t *image = make_image(&len, &whole), *broken = malloc(len);

	memcpy(broken, image, len);
	for (unsigned i = 0; i < 2000; i++) {
		size_t at[8], flips = test_between(&random, 1, 8);
		uint64_t frames;

		for (size_t k = 0; k < flips; k++)
			at[k] = test_flip_bit(&random, image, broken);
		frames = read_damaged(broken, len);
		assert_true(frames <= whole && frames + flips >= whole);
		least = FR_MIN(least, frames);
		for (size_t k = 0; k < flips; k++)
			broken[at[k]] = image[at[k]];
	}
	assert_true(least < whole);
}

TEST(a_truncated_image_has_the_frames_before_its_end)
{
	uint64_t random = 6, whole, last = 0;
	size_t len;
	_cleanup_free_ uint8_t *image = make_image(&len, &whole);

	for (size_t end = 0; end < len; end += test_between(&random, 1, end < 8192 ? 64 : 8192)) {
		_cleanup_free_ uint8_t *part = malloc(end ? end : 1);
		uint64_t frames;

		memcpy(part, image, end);
		frames = read_damaged(part, end);
		assert_true(frames >= last);
		last = frames;
	}
	assert_int_equal(last, whole);
}

/* The image has a valid header every 128 bytes. The payload of each header is long and has a wrong crc. */
TEST(forged_headers_do_not_make_the_search_quadratic)
{
	const size_t len = 32 << 20;
	_cleanup_free_ uint8_t *image = calloc(1, len);

	for (size_t at = 0; at + sizeof(struct fr_frame_header) <= len; at += 128) {
		struct fr_frame_header *f = (struct fr_frame_header *)(image + at);
		size_t payload = (len - at - sizeof(*f)) / 64 * 64;

		f->entry.magic = FR_FRAME_MAGIC;
		f->entry.bytes = (uint32_t)((sizeof(*f) + payload + 63) / 64 * 64);
		if (f->entry.bytes > len - at)
			continue;
		f->samples_len = (uint32_t)payload;
		f->entry.seq = at;
		f->entry.payload_crc = 1;
		f->entry.header_crc =
			fr_crc32c(0, (const uint8_t *)f + FR_CRC_FROM, sizeof(*f) - FR_CRC_FROM);
	}
	alarm(120); /* kills the test if the search is quadratic, because it would take minutes */
	assert_int_equal(read_damaged(image, len), 0);
	alarm(0);
}
