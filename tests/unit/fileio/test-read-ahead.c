// SPDX-License-Identifier: GPL-2.0-or-later

/* Reading ahead: whatever the file's size and whatever it does meanwhile, what comes is what stands there. */

#include "fileio/read_ahead.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* The memory of four blocks, all of which are on their way at a time. */
#define BLOCK (64u << 10)
#define WINDOW (256u << 10)
#define CHUNK 10007u /* read at once; no divisor of anything */

static bool no_ring;

int __real_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	return no_ring ? -EPERM : __real_io_uring_queue_init(entries, ring, flags);
}

/* A ring that takes no more after so many submissions, and what it took. */
static unsigned submissions = UINT_MAX, taken;

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
void __real_io_uring_queue_exit(struct io_uring *ring);
void __wrap_io_uring_queue_exit(struct io_uring *ring);

int __wrap_io_uring_submit(struct io_uring *ring)
{
	int n;

	if (submissions == 0)
		return -EAGAIN;
	submissions -= submissions != UINT_MAX;
	n = __real_io_uring_submit(ring);
	taken += n > 0 ? (unsigned)n : 0;
	return n;
}

/* Whoever closes the ring goes on to free the memory that is read into. */
void __wrap_io_uring_queue_exit(struct io_uring *ring)
{
	assert_int_equal(*ring->cq.khead, taken);
	taken = 0;
	__real_io_uring_queue_exit(ring);
}

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 13 ^ i);
}

static void append_bytes(int fd, uint64_t from, uint64_t to)
{
	_cleanup_free_ uint8_t *data = malloc(to - from + 1);

	assert_non_null(data);
	for (uint64_t i = from; i < to; i++)
		data[i - from] = byte_at(i);
	assert_int_equal(fr_pwrite_all(fd, data, to - from, (off_t)from), 0);
}

static int file_of(uint64_t size)
{
	char path[] = "/var/tmp/flightrec-read-ahead.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	assert_true(fd >= 0);
	unlink(path);
	append_bytes(fd, 0, size);
	return fd;
}

/* One call; all that it gives is right. */
static size_t read_some(struct fr_read_ahead *r, size_t len, uint64_t at)
{
	_cleanup_free_ uint8_t *data = malloc(len + 1);
	ssize_t n;

	assert_non_null(data);
	n = fr_read_ahead_read(r, data, len, at);
	assert_in_range(n, 0, len);
	for (size_t i = 0; i < (size_t)n; i++)
		if (data[i] != byte_at(at + i))
			fail_msg("byte %llu is wrong", (unsigned long long)(at + i));
	return (size_t)n;
}

/* From AT to the end; where that was. */
static uint64_t read_on(struct fr_read_ahead *r, uint64_t at)
{
	size_t n;

	while ((n = read_some(r, CHUNK, at)) == CHUNK)
		at += n;
	return at + n;
}

static void each_size(size_t memory)
{
	static const uint64_t sizes[] = {0, 1, CHUNK, BLOCK - 1, BLOCK, BLOCK + 1, WINDOW - 1, WINDOW,
		WINDOW + 1, 2 * WINDOW - 1, 2 * WINDOW, 2 * WINDOW + 1, 5 * WINDOW + 12345};

	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); i++) {
		_cleanup_close_ int fd = file_of(sizes[i]);
		struct fr_read_ahead *r;

		assert_int_equal(fr_read_ahead_new(fd, memory, &r), 0);
		assert_int_equal(read_on(r, 0), sizes[i]);
		assert_int_equal(read_some(r, 1, sizes[i]), 0);
		/* Again, and from the middle: it starts anew there. */
		assert_int_equal(read_on(r, 0), sizes[i]);
		assert_int_equal(read_on(r, sizes[i] / 2), sizes[i]);
		assert_int_equal(read_some(r, 10, sizes[i] + 1000), 0);
		assert_null(fr_read_ahead_free(r));
	}
}

static void test_sizes(void **state)
{
	each_size(WINDOW);
	each_size(2 * WINDOW);
	each_size(16 * WINDOW);
}

/* Wherever the ring gives up: what is not read ahead is read when it is wanted, and nothing is in flight over
   memory that is freed. */
static void test_ring_gives_up(void **state)
{
	for (unsigned i = 0; i < 14; i++) {
		_cleanup_close_ int fd = file_of(3 * WINDOW);
		struct fr_read_ahead *r;

		assert_int_equal(fr_read_ahead_new(fd, WINDOW, &r), 0);
		submissions = i;
		assert_int_equal(read_some(r, CHUNK, 0), CHUNK);
		if (i % 2)
			assert_int_equal(read_on(r, CHUNK), 3 * WINDOW);
		fr_read_ahead_free(r);
		submissions = UINT_MAX;
	}
}

/* Too little for two blocks, and a machine that forbids io_uring. */
static void test_sizes_without_ring(void **state)
{
	each_size(0);
	each_size(BLOCK);
	no_ring = true;
	each_size(WINDOW);
	no_ring = false;
}

/* More than all blocks hold, in one call. */
static void test_large_read(void **state)
{
	_cleanup_close_ int fd = file_of(9 * WINDOW);
	struct fr_read_ahead *r;

	assert_int_equal(fr_read_ahead_new(fd, WINDOW, &r), 0);
	assert_int_equal(read_some(r, 8 * WINDOW, 1), 8 * WINDOW);
	assert_int_equal(read_some(r, 8 * WINDOW, 8 * WINDOW + 1), WINDOW - 1);
	fr_read_ahead_free(r);
}

/* Shorter than what has been read ahead of: what comes is right, and it comes to an end, no later than where
   the file ended before. */
static void test_truncated(void **state)
{
	static const uint64_t ends[] = {0, 1, CHUNK, BLOCK, BLOCK + 1, WINDOW, 2 * WINDOW - 1};

	for (size_t i = 0; i < FR_ARRAY_SIZE(ends); i++) {
		_cleanup_close_ int fd = file_of(3 * WINDOW);
		struct fr_read_ahead *r;
		uint64_t end;

		assert_int_equal(fr_read_ahead_new(fd, WINDOW, &r), 0);
		assert_int_equal(read_some(r, CHUNK, 0), CHUNK);
		assert_int_equal(ftruncate(fd, (off_t)ends[i]), 0);
		end = read_on(r, CHUNK);
		/* What had been read by that moment may still come. */
		assert_in_range(end, FR_MAX(ends[i], (uint64_t)CHUNK), FR_MAX(ends[i], (uint64_t)2 * WINDOW));
		assert_int_equal(read_some(r, CHUNK, 3 * WINDOW - CHUNK), 0);
		fr_read_ahead_free(r);
	}
}

/* A file that is still being written. */
static void test_grows(void **state)
{
	_cleanup_close_ int fd = file_of(1000);
	struct fr_read_ahead *r;
	uint64_t at = 0;

	assert_int_equal(fr_read_ahead_new(fd, WINDOW, &r), 0);
	for (uint64_t size = 1000; size < 3 * WINDOW; size = size * 3 + 1) {
		append_bytes(fd, at, size);
		at = read_on(r, at);
		assert_int_equal(at, size);
	}
	fr_read_ahead_free(r);
}

static void test_errors(void **state)
{
	_cleanup_close_ int fd = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fr_read_ahead *r;
	uint8_t data[16];

	assert_int_equal(fr_read_ahead_new(fd, WINDOW, &r), 0);
	assert_int_equal(fr_read_ahead_read(r, data, sizeof(data), 0), -EISDIR);
	assert_int_equal(fr_read_ahead_read(r, data, sizeof(data), 0), -EISDIR);
	fr_read_ahead_free(r);
	assert_null(fr_read_ahead_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_sizes_without_ring),
		cmocka_unit_test(test_ring_gives_up),
		cmocka_unit_test(test_large_read),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
