/* SPDX-License-Identifier: GPL-2.0-or-later */

/* What is read back from the memory of a recorder that is gone: whole, cut off, damaged, made up. */

#include "records.h"
#include "base/cleanup.h"
#include "history/crc32c.h"
#include "history/layout.h"
#include "history/recover.h"
#include "history/unpack.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* A copy of the exact length, so that a sanitizer sees each byte past its end. */
static uint8_t *copy_image(struct fr_history *h, size_t *ret_len)
{
	off_t len = lseek(fr_history_fd(h), 0, SEEK_END);
	uint8_t *copy = malloc((size_t)len);

	assert_non_null(copy);
	assert_int_equal(pread(fr_history_fd(h), copy, (size_t)len, 0), len);
	*ret_len = (size_t)len;
	return copy;
}

static uint64_t walk_records(const void *records, size_t len, uint64_t *next)
{
	struct fr_section_iter it = fr_section_iter(records, len);
	const struct perf_event_header *record;
	uint64_t n = 0;

	while ((record = fr_section_next(&it))) {
		uint64_t number = test_check_record(record);

		if (*next != UINT64_MAX)
			assert_int_equal(number, *next);
		*next = number + 1;
		n++;
	}
	assert_ptr_equal(it.at, it.end);
	return n;
}

struct recovered {
	uint64_t samples, sideband;	      /* records */
	uint64_t next_sample, next_sideband;  /* behind the newest */
	uint64_t open_samples, open_sideband; /* of these, in the open chunk */
	struct fr_recovery_stats stats;
};

/* All of an undamaged image: numbers follow one another without a gap. */
static struct recovered recover_all(const void *image, size_t len, struct fr_unpack *u)
{
	_cleanup_recovery_ struct fr_recovery *r = NULL;
	struct recovered ret = {.next_sample = UINT64_MAX, .next_sideband = UINT64_MAX};
	const size_t cap = 1 << 20;
	_cleanup_free_ uint8_t *buffer = malloc(cap);
	struct fr_recovered_open open;
	struct fr_frame f;
	ssize_t n;

	assert_int_equal(fr_recovery_new(image, len, &r), 0);
	while (fr_recovery_next(r, &f)) {
		n = fr_section_decompress(u, f.sideband, f.sideband_len, buffer, cap);
		assert_int_equal(n, f.sideband_raw);
		ret.sideband += walk_records(buffer, (size_t)n, &ret.next_sideband);
		n = fr_section_decompress(u, f.samples, f.samples_len, buffer, cap);
		assert_int_equal(n, f.samples_raw);
		ret.samples += walk_records(buffer, (size_t)n, &ret.next_sample);
	}
	fr_recovery_open_chunk(r, &open);
	ret.open_sideband = walk_records(open.sideband, open.sideband_len, &ret.next_sideband);
	ret.open_samples = walk_records(open.samples, open.samples_len, &ret.next_sample);
	fr_recovery_stats(r, &ret.stats);
	return ret;
}

static void append_some(struct fr_history *h, uint64_t *n, uint64_t *m, uint64_t *random)
{
	unsigned count = (unsigned)test_between(random, 1, 100);

	test_append(h, *n, count, (uint32_t)test_between(random, 8, 80) * 8, *n % 3 == 0);
	*n += count;
	test_append_sideband(h, *m, 1, 120, false);
	(*m)++;
}

static void all_that_was_appended_comes_back(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	uint64_t n = 0, m = 0, random = 21;
	_cleanup_unpack_ struct fr_unpack *u = NULL;

	assert_int_equal(fr_unpack_new(&u), 0);
	for (unsigned i = 0; i < 3000; i++) {
		append_some(h, &n, &m, &random);
		if (i % 5 == 0)
			fr_history_seal(h);
		if (i % 97 == 0) {
			struct fr_history_stats stats;
			struct recovered r;
			size_t len;
			_cleanup_free_ uint8_t *image = copy_image(h, &len);

			r = recover_all(image, len, u);
			fr_history_stats(h, &stats);
			assert_true(r.stats.header_ok);
			assert_int_equal(r.stats.gaps, 0);
			assert_int_equal(r.next_sample, n);
			assert_int_equal(r.next_sideband, m);
			/* At least what was in the ring; what is not yet overwritten besides. */
			assert_true(r.samples + r.open_samples >= stats.samples);
			assert_true(r.stats.frames >= stats.frames);
		}
	}
	fr_history_free(h);
}

/* Killed between the frame and the marks of the next chunk: what is in both counts once. */
static void a_chunk_that_is_a_frame_already_is_not_open(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct fr_image_header *i;
	struct recovered r;
	uint64_t fill;
	size_t len;

	assert_int_equal(fr_unpack_new(&u), 0);
	test_append(h, 0, 10, 80, false);
	test_append_sideband(h, 0, 5, 80, false);
	_cleanup_free_ uint8_t *before = copy_image(h, &len);
	fill = ((struct fr_image_header *)before)->samples_fill;
	r = recover_all(before, len, u);
	assert_int_equal(r.open_samples, 10);
	assert_int_equal(r.open_sideband, 5);

	fr_history_seal(h);
	_cleanup_free_ uint8_t *after = copy_image(h, &len);
	i = (struct fr_image_header *)after;
	assert_int_equal(i->open_seq, 2);
	i->open_seq = 1;
	i->samples_fill = fill;
	r = recover_all(after, len, u);
	assert_int_equal(r.samples, 10);
	assert_int_equal(r.sideband, 5);
	assert_int_equal(r.open_samples + r.open_sideband, 0);
	fr_history_free(h);
}

/* Until a process has put the first records into the ring that FD is. */
static void wait_for_records(int fd)
{
	struct fr_image_header i = {0};

	while (i.open_seq < 2 && !i.samples_fill) {
		usleep(100);
		assert_int_equal(pread(fd, &i, sizeof(i), 0), sizeof(i));
	}
}

/* A process is killed while it appends; its memory is ours too. */
static void a_kill_at_any_moment_leaves_whole_records(void **state)
{
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	uint64_t random = 17;

	assert_int_equal(fr_unpack_new(&u), 0);
	for (unsigned i = 0; i < 25; i++) {
		struct fr_history *h = test_history(1 << 20, NULL, NULL);
		uint64_t n = 0, m = 0;
		struct recovered r;
		size_t len;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (pid == 0)
			append_some(h, &n, &m, &random);
		wait_for_records(fr_history_fd(h));
		usleep((useconds_t)test_between(&random, 0, 20000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);

		_cleanup_free_ uint8_t *image = copy_image(h, &len);
		r = recover_all(image, len, u);
		assert_int_equal(r.stats.gaps, 0);
		assert_true(r.stats.header_ok);
		assert_true(r.samples + r.open_samples > 0);
		fr_history_free(h);
	}
}

/* Go through all that recovery hands out, whatever it is; returns the number of frames. */
static uint64_t survive(const uint8_t *image, size_t len, struct fr_unpack *u, uint8_t *buffer, size_t cap)
{
	_cleanup_recovery_ struct fr_recovery *r = NULL;
	struct fr_recovered_open open;
	struct fr_recovery_stats stats;
	struct fr_section_kept kept;
	uint64_t last_seq = 0, frames = 0;
	struct fr_frame f;
	ssize_t n;

	assert_int_equal(fr_recovery_new(image, len, &r), 0);
	for (; fr_recovery_next(r, &f); frames++) {
		assert_true(frames == 0 || f.seq > last_seq);
		last_seq = f.seq;
		assert_true((const uint8_t *)f.sideband >= image);
		assert_true((const uint8_t *)f.samples + f.samples_len <= image + len);
		n = fr_section_decompress(u, f.samples, f.samples_len, buffer, cap);
		if (n > 0)
			fr_section_filter(buffer, (size_t)n, 0, UINT64_MAX, true, &kept);
		n = fr_section_decompress(u, f.sideband, f.sideband_len, buffer, cap);
		if (n > 0)
			fr_section_filter(buffer, (size_t)n, 0, UINT64_MAX, true, &kept);
	}
	fr_recovery_open_chunk(r, &open);
	for (struct fr_section_iter it = fr_section_iter(open.samples, open.samples_len);
		fr_section_next(&it);)
		;
	for (struct fr_section_iter it = fr_section_iter(open.sideband, open.sideband_len);
		fr_section_next(&it);)
		;
	fr_recovery_stats(r, &stats);
	assert_int_equal(stats.frames, frames);
	return frames;
}

static struct fr_history *small_ring_with_frames(void)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	uint64_t n = 0, m = 0, random = 4;

	for (unsigned i = 0; i < 200; i++) {
		append_some(h, &n, &m, &random);
		if (i % 6 == 0)
			fr_history_seal(h);
	}
	return h;
}

/* The bytes that matter: headers, fill marks, sections, records; else a flip mostly hits zeros. */
static size_t place_that_matters(uint64_t *random, const uint8_t *image, size_t len)
{
	const struct fr_image_header *i = (const struct fr_image_header *)image;
	size_t at;

	switch (test_random(random) % 4) {
	case 0:
		return test_random(random) % sizeof(*i);
	case 1:
		return i->samples_offset + test_random(random) % 2048;
	default:
		do
			at = i->log_offset + test_random(random) % (len - i->log_offset);
		while (!image[at]);
		return test_random(random) % 2 ? at : at / FR_FRAME_ALIGN * FR_FRAME_ALIGN + at % 96;
	}
}

static void flipped_bits_do_no_harm(void **state)
{
	const size_t cap = 256 << 10;
	_cleanup_free_ uint8_t *buffer = malloc(cap);
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct fr_history *h = small_ring_with_frames();
	uint64_t random = 99, whole, least = UINT64_MAX;
	size_t len;
	_cleanup_free_ uint8_t *image = copy_image(h, &len), *broken = malloc(len);

	assert_int_equal(fr_unpack_new(&u), 0);
	whole = survive(image, len, u, buffer, cap);
	assert_true(whole > 20);
	memcpy(broken, image, len);
	for (unsigned i = 0; i < 2000; i++) {
		size_t at[8], flips = test_between(&random, 1, 8);

		for (size_t k = 0; k < flips; k++) {
			at[k] = FR_MIN(place_that_matters(&random, image, len), len - 1);
			broken[at[k]] ^= (uint8_t)(1u << test_random(&random) % 8);
		}
		uint64_t frames = survive(broken, len, u, buffer, cap);

		assert_true(frames <= whole && frames + flips >= whole);
		least = FR_MIN(least, frames);
		for (size_t k = 0; k < flips; k++)
			broken[at[k]] = image[at[k]];
	}
	assert_true(least < whole);
	fr_history_free(h);
}

static void truncated_images_give_what_is_left(void **state)
{
	const size_t cap = 256 << 10;
	_cleanup_free_ uint8_t *buffer = malloc(cap);
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct fr_history *h = small_ring_with_frames();
	uint64_t random = 6, whole, last = 0;
	size_t len;
	_cleanup_free_ uint8_t *image = copy_image(h, &len);

	assert_int_equal(fr_unpack_new(&u), 0);
	whole = survive(image, len, u, buffer, cap);
	for (size_t cut = 0; cut < len; cut += test_between(&random, 1, cut < 8192 ? 64 : 8192)) {
		_cleanup_free_ uint8_t *part = malloc(cut ? cut : 1);
		uint64_t frames;

		memcpy(part, image, cut);
		frames = survive(part, cut, u, buffer, cap);
		assert_true(frames >= last);
		last = frames;
	}
	assert_int_equal(last, whole);
	fr_history_free(h);
}

/* Without its header an image is searched all the same. */
static void a_lost_header_loses_no_frame(void **state)
{
	const size_t cap = 256 << 10;
	_cleanup_free_ uint8_t *buffer = malloc(cap);
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct fr_history *h = small_ring_with_frames();
	uint64_t whole;
	size_t len;
	_cleanup_free_ uint8_t *image = copy_image(h, &len);

	assert_int_equal(fr_unpack_new(&u), 0);
	whole = survive(image, len, u, buffer, cap);
	memset(image, 0, sizeof(struct fr_image_header));
	assert_int_equal(survive(image, len, u, buffer, cap), whole);
	fr_history_free(h);
}

/* Headers that hold, one every 64 bytes, each with a payload that reaches far and does not: the search ends.
 */
static void forged_headers_do_not_make_the_search_quadratic(void **state)
{
	const size_t len = 32 << 20, cap = 64 << 10;
	_cleanup_free_ uint8_t *image = calloc(1, len), *buffer = malloc(cap);
	_cleanup_unpack_ struct fr_unpack *u = NULL;

	assert_int_equal(fr_unpack_new(&u), 0);
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
	alarm(120); /* minutes, if each were followed to its end */
	assert_int_equal(survive(image, len, u, buffer, cap), 0);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_was_appended_comes_back),
		cmocka_unit_test(a_chunk_that_is_a_frame_already_is_not_open),
		cmocka_unit_test(a_kill_at_any_moment_leaves_whole_records),
		cmocka_unit_test(flipped_bits_do_no_harm),
		cmocka_unit_test(truncated_images_give_what_is_left),
		cmocka_unit_test(a_lost_header_loses_no_frame),
		cmocka_unit_test(forged_headers_do_not_make_the_search_quadratic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
