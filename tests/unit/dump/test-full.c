// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A disk that is full at every byte: a small dump with room for 0 bytes, for 1, … up to all of it and its
 * JSON. Each time the file is there, whole, or it is not there at all. Room in two ways: the kernel's own
 * limit of a file's size (EFBIG, also through io_uring), and a disk with so many bytes left (ENOSPC), which
 * the linker's --wrap puts under the code that ships.
 */

#include "dumping.h"
#include "base/cleanup.h"
#include "fileio/writer_private.h"

#include <errno.h>
#include <liburing.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

/* The disk. Off: the real one alone. */
static struct {
	bool on, no_ring;
	uint64_t room;	   /* bytes left */
	uint64_t data_end; /* how far the dump's own file goes */
} disk;

int __real_fr_writer_ring_reap(struct fr_writer *w);
int __wrap_fr_writer_ring_reap(struct fr_writer *w);
int __real_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
int __real_fallocate(int fd, int mode, off_t at, off_t len);
int __wrap_fallocate(int fd, int mode, off_t at, off_t len);

/* Of LEN bytes at AT of the dump's file, as many as there is room for: what lies behind its end takes some.
 */
static size_t take_room(uint64_t at, size_t len)
{
	uint64_t end = FR_MIN(at + len, disk.data_end + disk.room);

	if (end <= at)
		return 0;
	if (end > disk.data_end) {
		disk.room -= end - disk.data_end;
		disk.data_end = end;
	}
	return (size_t)(end - at);
}

int __wrap_fr_writer_ring_reap(struct fr_writer *w)
{
	if (disk.on) {
		const struct fr_writer_block *b;
		struct io_uring_cqe *cqe;

		assert_int_equal(io_uring_wait_cqe(&w->ring, &cqe), 0);
		b = io_uring_cqe_get_data(cqe);
		if (cqe->res > 0)
			cqe->res = (int)take_room(b->offset + b->done, (size_t)cqe->res);
		if (cqe->res == 0)
			cqe->res = -ENOSPC;
	}
	return __real_fr_writer_ring_reap(w);
}

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	return disk.no_ring ? -EPERM : __real_io_uring_queue_init(entries, ring, flags);
}

/* What the machine has of BPF would be in each file, and others load and unload it meanwhile: the rows need a
   file of one size. */
int __wrap_bpf_prog_get_next_id(uint32_t from, uint32_t *next);

int __wrap_bpf_prog_get_next_id(uint32_t from, uint32_t *next)
{
	return -ENOENT;
}

static ssize_t no_space(void)
{
	errno = ENOSPC;
	return -1;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at)
{
	if (disk.on)
		len = take_room((uint64_t)at, len);
	return len ? __real_pwrite(fd, data, len, at) : no_space();
}

/* The JSON is written so. */
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	if (disk.on) {
		len = FR_MIN(len, disk.room);
		disk.room -= len;
	}
	return len ? __real_write(fd, data, len) : no_space();
}

/* A disk that is nearly full has no steps of 64 MiB to give. */
int __wrap_fallocate(int fd, int mode, off_t at, off_t len)
{
	return disk.on ? (int)no_space() : __real_fallocate(fd, mode, at, len);
}

static int setup(void **state)
{
	memset(&disk, 0, sizeof(disk));
	return dumping_setup(state, "/dev/shm", 2, 8);
}

/* With O_DIRECT, and at a disk's speed: not at every byte. */
#define DISK_STEP 61

static int setup_on_disk(void **state)
{
	memset(&disk, 0, sizeof(disk));
	return dumping_setup(state, "/var/tmp", 2, 8);
}

/* How the dumps of one row ended. */
struct ends {
	unsigned none, no_json, whole;
};

/* One dump; it has failed with ERROR, or it has not failed at all. */
static void dump_once(struct dumping *f, int error, struct ends *ends)
{
	struct fr_dump_result result = {0};
	int r = dumping_dump(f, &result);

	disk.on = false;
	if (r < 0) {
		assert_int_equal(r, -error);
		assert_int_equal(dumping_check_directory(f, false), 0);
		ends->none++;
	} else {
		assert_int_equal(dumping_check_directory(f, false), 1);
		assert_true(result.sidecar_error == 0 || result.sidecar_error == -error);
		ends->no_json += result.sidecar_error != 0;
		ends->whole += result.sidecar_error == 0;
	}
	dumping_check_ring(f);
}

static uint64_t file_size(struct dumping *f)
{
	struct fr_dump_result result;

	assert_int_equal(dumping_dump(f, &result), 0);
	assert_int_equal(dumping_check_directory(f, false), 1);
	return result.bytes;
}

static void fill_up(struct dumping *f, unsigned step)
{
	const uint64_t size = file_size(f);
	struct ends ends = {0};

	/* Until the JSON fits as well; it is a kilobyte or so. */
	for (uint64_t room = 0; !ends.whole; room += step) {
		assert_true(room < size + (64u << 10));
		disk.on = true;
		disk.room = room;
		disk.data_end = 0;
		dump_once(f, ENOSPC, &ends);
	}
	print_message("%llu bytes: %u times none, %u times without JSON\n", (unsigned long long)size,
		ends.none, ends.no_json);
	assert_true(ends.none >= size / step && ends.no_json > 100 / step);
}

static void test_no_space(void **state)
{
	fill_up(*state, 1);
}

static void test_no_space_without_ring(void **state)
{
	disk.no_ring = true;
	fill_up(*state, 1);
}

static void test_no_space_on_disk(void **state)
{
	fill_up(*state, DISK_STEP);
}

/* The kernel cuts the write that crosses the limit, and refuses the next. */
static void limit_size(struct dumping *f, unsigned step)
{
	const uint64_t size = FR_ALIGN_UP(file_size(f), FR_WRITER_ALIGN);
	struct rlimit before, now;
	struct ends ends = {0};

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (uint64_t room = 0; room < size + step; room += step) {
		now = (struct rlimit){room, before.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
		dump_once(f, EFBIG, &ends);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	print_message("%llu bytes: %u times none, %u times a file\n", (unsigned long long)size, ends.none,
		ends.whole + ends.no_json);
	assert_true(ends.none > 0 && ends.whole > 0);
}

static void test_size_limit(void **state)
{
	limit_size(*state, 1);
}

static void test_size_limit_without_ring(void **state)
{
	disk.no_ring = true;
	limit_size(*state, 1);
}

static void test_size_limit_on_disk(void **state)
{
	limit_size(*state, DISK_STEP);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, dumping_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_space),
		TEST(test_no_space_without_ring),
		TEST(test_size_limit),
		TEST(test_size_limit_without_ring),
		cmocka_unit_test_setup_teardown(test_no_space_on_disk, setup_on_disk, dumping_teardown),
		cmocka_unit_test_setup_teardown(test_size_limit_on_disk, setup_on_disk, dumping_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
