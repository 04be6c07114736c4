// SPDX-License-Identifier: GPL-2.0-or-later

/* Reading ahead: the caller gets the bytes of the file from any place, also while the file changes. */

#include "fileio/read_ahead.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <cmocka.h>

#define AHEAD (256u << 10)
#define CHUNK 10007u /* bytes of one read; divides no other size of this test */

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

static int make_file(uint64_t size)
{
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	append_bytes(fd, 0, size);
	return fd;
}

/* Reads once and checks the bytes. Returns their number. */
static size_t read_once(struct fr_read_ahead *r, size_t len, uint64_t at)
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

/* Reads from AT to the end of the file. Returns where that is. */
static uint64_t read_to_end(struct fr_read_ahead *r, uint64_t at)
{
	size_t n;

	while ((n = read_once(r, CHUNK, at)) == CHUNK)
		at += n;
	return at + n;
}

static void test_every_byte_is_read_from_any_place(void **state)
{
	static const uint64_t sizes[] = {0, 1, CHUNK, AHEAD - 1, AHEAD, AHEAD + 1, 5 * AHEAD + 12345};
	static const size_t aheads[] = {0, AHEAD / 2, AHEAD, 16 * AHEAD};

	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes) * FR_ARRAY_SIZE(aheads); i++) {
		const uint64_t size = sizes[i / FR_ARRAY_SIZE(aheads)];
		_cleanup_close_ int fd = make_file(size);
		struct fr_read_ahead *r;

		assert_int_equal(fr_read_ahead_new(fd, aheads[i % FR_ARRAY_SIZE(aheads)], &r), 0);
		assert_int_equal(read_to_end(r, 0), size);
		assert_int_equal(read_once(r, 1, size), 0);
		assert_int_equal(read_to_end(r, 0), size);
		assert_int_equal(read_to_end(r, size / 2), size);
		assert_int_equal(read_once(r, size + 10, 0), size);
		assert_int_equal(read_once(r, 10, size + 1000), 0);
		assert_null(fr_read_ahead_free(r));
	}
	assert_null(fr_read_ahead_free(NULL));
}

static void test_read_ends_where_the_file_ends_now(void **state)
{
	static const uint64_t sizes[] = {AHEAD, 0, 1, CHUNK, 3 * AHEAD, 2 * AHEAD};
	_cleanup_close_ int fd = make_file(0);
	struct fr_read_ahead *r;
	uint64_t old = 0;

	assert_int_equal(fr_read_ahead_new(fd, AHEAD, &r), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); old = sizes[i++]) {
		if (sizes[i] > old)
			append_bytes(fd, old, sizes[i]);
		else
			assert_int_equal(ftruncate(fd, (off_t)sizes[i]), 0);
		assert_int_equal(read_to_end(r, FR_MIN(old, sizes[i])), sizes[i]);
	}
	fr_read_ahead_free(r);
}

/* The pages of FD from AT on that are in memory, in bytes. */
static size_t cached_bytes(int fd, uint64_t at, size_t len)
{
	unsigned char pages[4 * AHEAD / 4096];
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)at);
	size_t n = 0;

	assert_true(map != MAP_FAILED && len / 4096 <= sizeof(pages));
	assert_int_equal(mincore(map, len, pages), 0);
	munmap(map, len);
	for (size_t i = 0; i < len / 4096; i++)
		n += (pages[i] & 1) * 4096;
	return n;
}

static void test_bytes_are_in_memory_before_they_are_wanted(void **state)
{
	_cleanup_close_ int fd = make_file(16 * AHEAD);
	struct fr_read_ahead *r;
	int tries = 0;

	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	if (cached_bytes(fd, 8 * AHEAD, AHEAD) > 0) {
		print_message("skipped: this file system does not drop cached pages\n");
		skip();
	}
	assert_int_equal(fr_read_ahead_new(fd, AHEAD, &r), 0);
	assert_int_equal(read_once(r, 4096, 8 * AHEAD), 4096);
	while (cached_bytes(fd, 8 * AHEAD, AHEAD) < AHEAD && tries++ < 1000)
		usleep(10000);
	assert_in_range(tries, 0, 1000);
	fr_read_ahead_free(r);
}

static void test_read_error_is_returned(void **state)
{
	_cleanup_close_ int fd = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fr_read_ahead *r;
	uint8_t data[16];

	assert_int_equal(fr_read_ahead_new(fd, AHEAD, &r), 0);
	assert_int_equal(fr_read_ahead_read(r, data, sizeof(data), 0), -EISDIR);
	fr_read_ahead_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_is_read_from_any_place),
		cmocka_unit_test(test_read_ends_where_the_file_ends_now),
		cmocka_unit_test(test_bytes_are_in_memory_before_they_are_wanted),
		cmocka_unit_test(test_read_error_is_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
