// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the sections of a frame (one of side-band, one of samples): their crc, their compression, the walk
   over their records, and the filter by time. */

#include "records.h"
#include "base/cleanup.h"
#include "history/codec.h"
#include "base/crc32c.h"
#include "history/unpack.h"

#include <errno.h>
#include <string.h>

TEST(crc_is_castagnoli)
{
	uint8_t bytes[257];
	uint64_t random = 5;

	/* The examples of RFC 3720, B.4. */
	memset(bytes, 0, 32);
	assert_int_equal(fr_crc32c(0, bytes, 32), 0x8a9136aau);
	memset(bytes, 0xff, 32);
	assert_int_equal(fr_crc32c(0, bytes, 32), 0x62a8ab43u);
	assert_int_equal(fr_crc32c(0, "123456789", 9), 0xe3069283u);

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)test_random(&random);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		uint32_t whole = fr_crc32c(0, bytes, n);

		assert_int_equal(fr_crc32c_table(0, bytes, n), whole);
		assert_int_equal(fr_crc32c(fr_crc32c(0, bytes, n / 3), bytes + n / 3, n - n / 3), whole);
	}
}

/* Tests several compression levels. Each level uses one codec for all sizes, from 1 byte to the largest
   section. */
TEST(decompression_restores_every_section)
{
	static const int levels[] = {-50, -5, -1, 1, 3, 5, 9};
	const size_t max = 256 << 10;
	_cleanup_free_ uint8_t *in = malloc(max), *out = malloc(fr_codec_bound(max)), *back = malloc(max);
	uint64_t random = 9;
	struct fr_unpack *u;
	struct fr_codec *c;

	for (size_t i = 0; i < max; i++)
		in[i] = (uint8_t)(i < max / 2 ? test_random(&random) : i >> 6);
	assert_int_equal(fr_unpack_new(&u), 0);
	for (size_t l = 0; l < FR_ARRAY_SIZE(levels); l++) {
		assert_int_equal(fr_codec_new(levels[l], max, &c), 0);
		for (int i = 0; i < 60; i++) {
			size_t n = i % 3 ? test_between(&random, 1, 300) : test_between(&random, 1, max);
			const uint8_t *from = in + test_random(&random) % (max - n + 1);
			ssize_t len = fr_codec_compress(c, from, n, out, fr_codec_bound(n));

			assert_true(len > 0 && (size_t)len <= fr_codec_bound(n));
			assert_int_equal(
				fr_section_decompress(u, FR_ENCODING_RECORDS, out, (size_t)len, back, max),
				n);
			assert_memory_equal(back, from, n);
			/* A buffer that is too small and an incomplete section are refused. */
			assert_int_equal(
				fr_section_decompress(u, FR_ENCODING_RECORDS, out, (size_t)len, back, n - 1),
				-EBADMSG);
			assert_int_equal(fr_section_decompress(
						 u, FR_ENCODING_RECORDS, out, (size_t)len - 1, back, max),
				-EBADMSG);
		}
		fr_codec_free(c);
	}
	assert_int_equal(fr_codec_new(99, max, &c), -EINVAL);
	assert_int_equal(fr_section_decompress(u, FR_ENCODING_RECORDS, NULL, 0, back, max), 0);
	assert_int_equal(fr_section_decompress(u, FR_ENCODING_RECORDS, "no zstd", 7, back, max), -EBADMSG);
	fr_unpack_free(u);
}

TEST(a_codec_works_after_a_failure)
{
	static const uint8_t in[4096] = "some bytes, and many zeros";
	uint8_t out[8192];
	struct fr_codec *c;

	assert_int_equal(fr_codec_new(1, sizeof(in), &c), 0);
	assert_int_equal(fr_codec_compress(c, in, sizeof(in), out, 1), -EIO);
	assert_in_range(fr_codec_compress(c, in, sizeof(in), out, sizeof(out)), 1, sizeof(in));
	assert_int_equal(fr_codec_compress_columns(c, in, sizeof(in), out, 1), -EIO);
	assert_in_range(fr_codec_compress_columns(c, in, sizeof(in), out, sizeof(out)), 1, sizeof(in));
	fr_codec_free(c);
}

TEST(the_walk_stops_at_an_incomplete_record)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_record_iter it;

	test_put(&b, TEST_SAMPLES, 1, 80, false);
	test_put(&b, TEST_SIDEBAND, 2, 128, false);
	it = fr_record_iter(b.data, b.len);
	assert_int_equal(test_check_record(fr_record_next(&it)), 1);
	assert_int_equal(test_check_record(fr_record_next(&it)), 2);
	assert_null(fr_record_next(&it));
	assert_ptr_equal(it.at, it.end);

	it = fr_record_iter(b.data, b.len - 8);
	assert_non_null(fr_record_next(&it));
	assert_null(fr_record_next(&it));
	assert_ptr_equal(it.at, b.data + 80);

	((struct perf_event_header *)(b.data + 80))->size = 0;
	it = fr_record_iter(b.data, b.len);
	assert_non_null(fr_record_next(&it));
	assert_null(fr_record_next(&it));
}

/* Put the records 0 … 9, with the times 1 … 10, into B. */
static void put_ten(struct fr_buf *b)
{
	b->len = 0;
	for (uint64_t i = 0; i < 10; i++)
		test_put(b, i % 2 ? TEST_SIDEBAND : TEST_SAMPLES, i, i % 2 ? 96 : 72, i % 2 == 0);
}

static void check_kept(const uint8_t *data, size_t len, uint64_t from, uint64_t to)
{
	struct fr_record_iter it = fr_record_iter(data, len);
	const struct perf_event_header *record;
	uint64_t next = from;

	while ((record = fr_record_next(&it)))
		assert_int_equal(test_check_record(record), next++ - 1);
	assert_ptr_equal(it.at, it.end);
	assert_int_equal(next, to + 1);
}

TEST(the_filter_keeps_the_window)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_section_kept kept;
	ssize_t len;

	for (uint64_t from = 1; from <= 10; from++) {
		for (uint64_t to = from; to <= 10; to++) {
			put_ten(&b);
			len = fr_section_filter(b.data, b.len, from, to, &kept);
			assert_true(len > 0);
			check_kept(b.data, (size_t)len, from, to);
			assert_int_equal(kept.records, to - from + 1);
			assert_int_equal(kept.first_ns, from);
			assert_int_equal(kept.last_ns, to);
		}
	}
	put_ten(&b);
	assert_int_equal(fr_section_filter(b.data, b.len, 11, UINT64_MAX, &kept), 0);
	assert_int_equal(kept.records, 0);
	put_ten(&b);
	assert_int_equal(fr_section_filter(b.data, b.len - 1, 0, UINT64_MAX, &kept), -EBADMSG);
}
