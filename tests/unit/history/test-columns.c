// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the encoding of samples by columns: every section comes back bit for bit, hostile bytes are
   refused, and a ring chooses the encoding by the size of its frames. */

#include "records.h"
#include "base/cleanup.h"
#include "history/codec.h"
#include "history/columns.h"
#include "history/unpack.h"

#include <errno.h>
#include <string.h>

#define MAX (64u << 10)

struct fixture {
	struct fr_columns *columns;
	uint64_t random;
	_Alignas(8) uint8_t back[MAX];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(fr_columns_new(MAX, &f->columns), 0);
	f->random = 3;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fr_columns_free(f->columns);
	free(f);
	return 0;
}

FIXTURE(setup, teardown)

/* Encodes RECORDS into a buffer of their exact size, so that sanitizers see each read outside of it. */
static uint8_t *encode(struct fixture *f, const struct fr_buf *records, size_t *ret_len)
{
	const void *encoded;
	size_t columns;
	uint8_t *copy;

	*ret_len = fr_columns_encode(f->columns, records->data, records->len, &encoded, &columns);
	assert_in_range(*ret_len, 1, fr_columns_bound(records->len));
	assert_in_range(columns, 1, *ret_len);
	copy = malloc(*ret_len);
	assert_non_null(copy);
	memcpy(copy, encoded, *ret_len);
	return copy;
}

static void check(struct fixture *f, const struct fr_buf *records)
{
	size_t len;
	_cleanup_free_ uint8_t *encoded = encode(f, records, &len);

	assert_int_equal(fr_columns_decode(encoded, len, f->back, MAX), records->len);
	if (records->len)
		assert_memory_equal(f->back, records->data, records->len);
	if (records->len)
		assert_int_equal(fr_columns_decode(encoded, len, f->back, records->len - 1), -EBADMSG);
}

/* A time near the time before, far from it, or any number. */
static uint64_t next_time(struct fixture *f, uint64_t before)
{
	switch (test_random(&f->random) % 16) {
	case 0:
		return test_random(&f->random);
	case 1:
		return before - test_between(&f->random, 0, 1u << 30);
	case 2:
		return before;
	default:
		return before + test_between(&f->random, 0, 1000);
	}
}

/* Appends a record of any of several types: a sample, side-band, or a record of perf. */
static void put_any(struct fixture *f, struct fr_buf *b, uint64_t time)
{
	static const uint32_t types[] = {PERF_RECORD_SAMPLE, PERF_RECORD_SAMPLE, PERF_RECORD_SAMPLE,
		PERF_RECORD_LOST, FR_RECORD_FINISHED_ROUND, 4711};
	const uint32_t type = types[test_random(&f->random) % FR_ARRAY_SIZE(types)];
	const size_t at = b->len,
		     size = type == FR_RECORD_FINISHED_ROUND
				    ? 8
				    : 8 * test_between(&f->random, 8, test_random(&f->random) % 8 ? 20 : 400);
	struct fr_sample *s;

	assert_int_equal(fr_buf_append_zero(b, size), 0);
	for (size_t i = 0; i < size; i++)
		b->data[at + i] = (uint8_t)test_random(&f->random);
	s = (struct fr_sample *)(b->data + at);
	s->header.type = type;
	s->header.size = (uint16_t)size;
	if (type == PERF_RECORD_SAMPLE)
		s->time = time;
}

TEST(every_section_comes_back_bit_for_bit)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 2000; i++) {
		_cleanup_buf_ struct fr_buf b = {0};
		const uint64_t n = test_between(&f->random, 0, 20);
		uint64_t time = test_random(&f->random);

		for (uint64_t j = 0; j < n; j++) {
			time = next_time(f, time);
			put_any(f, &b, time);
		}
		check(f, &b);
	}
}

TEST(extreme_times_come_back)
{
	static const uint64_t times[] = {0, UINT64_MAX, 1, 1ULL << 63, (1ULL << 63) - 1, 0, 0};
	struct fixture *f = *state;

	for (size_t first = 0; first < FR_ARRAY_SIZE(times); first++) {
		_cleanup_buf_ struct fr_buf b = {0};

		for (size_t i = first; i < FR_ARRAY_SIZE(times); i++) {
			test_put(&b, TEST_SAMPLES, i, 72, true);
			((struct fr_sample *)(b.data + b.len - 72))->time = times[i];
		}
		check(f, &b);
	}
}

TEST(what_is_not_whole_records_is_not_encoded)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fixture *f = *state;
	const void *encoded;
	size_t at;

	test_put(&b, TEST_SAMPLES, 1, 80, true);
	test_put(&b, TEST_SAMPLES, 2, 80, true);
	for (size_t len = 1; len < b.len; len++)
		assert_int_equal(fr_columns_encode(f->columns, b.data, len, &encoded, &at) != 0, len == 80);
	((struct perf_event_header *)(b.data + 80))->size = 32; /* a sample without a time */
	assert_int_equal(fr_columns_encode(f->columns, b.data, b.len, &encoded, &at), 0);
	assert_int_equal(fr_columns_encode(f->columns, b.data, MAX + 1, &encoded, &at), 0);
}

TEST(hostile_bytes_are_refused)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 20000; i++) {
		_cleanup_buf_ struct fr_buf b = {0};
		_cleanup_free_ uint8_t *encoded = NULL, *cut = NULL;
		size_t len, kept;
		ssize_t n;

		for (uint64_t j = test_between(&f->random, 1, 8); j > 0; j--)
			put_any(f, &b, test_random(&f->random));
		encoded = encode(f, &b, &len);
		for (uint64_t j = test_between(&f->random, 1, 3); j > 0; j--)
			encoded[test_random(&f->random) % (j == 1 ? FR_MIN(len, (size_t)24) : len)] =
				(uint8_t)test_random(&f->random);
		kept = test_random(&f->random) % 2 ? len : test_random(&f->random) % len;
		cut = malloc(kept + 1);
		assert_non_null(cut);
		memcpy(cut, encoded, kept);
		n = fr_columns_decode(cut, kept, f->back, test_between(&f->random, 0, MAX));
		assert_true(n == -EBADMSG || (n >= 0 && n <= (ssize_t)MAX));
	}
}

/* Appends N samples that differ in their times only, or in all bytes. */
static void append(struct fixture *f, struct fr_history *h, unsigned n, bool noise, uint64_t *time)
{
	_cleanup_buf_ struct fr_buf b = {0};
	const uint64_t first = *time;

	for (unsigned i = 0; i < n; i++) {
		test_put(&b, TEST_SAMPLES, noise ? i : 0, 120, noise);
		*time += test_between(&f->random, 300, 600);
		((struct fr_sample *)(b.data + b.len - 120))->time = *time;
	}
	assert_int_equal(fr_history_append(h, b.data, b.len, n, first, *time), 0);
}

/* Decodes all frames, and checks their records, and about how long a dump makes their samples. */
static unsigned count_columns(struct fr_history *h, bool noise, unsigned *ret_frames)
{
	static _Alignas(8) uint8_t raw[FR_HISTORY_SECTION_MAX], packed[FR_HISTORY_SECTION_MAX * 2];
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct fr_codec *codec;
	struct fr_snapshot *s;
	struct fr_frame frame;
	unsigned n = 0;

	*ret_frames = 0;
	assert_int_equal(fr_unpack_new(&u), 0);
	assert_int_equal(fr_codec_new(1, sizeof(raw), &codec), 0);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	while (fr_snapshot_next(s, &frame)) {
		struct fr_section_kept kept;
		ssize_t len = fr_frame_samples(u, &frame, raw, sizeof(raw)),
			dump_len = fr_codec_compress(codec, raw, (size_t)len, packed, sizeof(packed));

		/* Other samples than in the newest try can make it too large. */
		assert_in_range(frame.samples_dump_len, dump_len * 2 / 3,
			noise ? frame.samples_raw : dump_len * 3 / 2);
		assert_int_equal(len, frame.samples_raw);
		assert_int_equal(fr_section_filter(raw, (size_t)len, 0, UINT64_MAX, &kept), len);
		assert_int_equal(kept.records, frame.n_samples);
		n += frame.samples_encoding == FR_ENCODING_COLUMNS;
		++*ret_frames;
	}
	fr_snapshot_free(s);
	fr_codec_free(codec);
	return n;
}

TEST(a_ring_uses_columns_where_they_are_smaller)
{
	struct fixture *f = *state;
	struct fr_history *h = test_history(8u << 20, NULL, NULL);
	unsigned frames, columns;
	uint64_t time = 1;

	for (unsigned i = 0; i < 100; i++) {
		append(f, h, 500, false, &time);
		assert_int_equal(fr_history_seal(h), 0);
	}
	columns = count_columns(h, false, &frames);
	assert_int_equal(frames, 100);
	assert_int_equal(columns, 100);
	/* Few samples stay as they are. So do samples without anything that repeats, after the next try. */
	append(f, h, 10, false, &time);
	assert_int_equal(fr_history_seal(h), 0);
	for (unsigned i = 0; i < 40; i++) {
		append(f, h, 500, true, &time);
		assert_int_equal(fr_history_seal(h), 0);
	}
	columns = count_columns(h, true, &frames);
	assert_int_equal(frames, 141);
	assert_in_range(columns, 100, 132);
	fr_history_free(h);
}
