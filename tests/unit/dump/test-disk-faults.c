// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Tests of dumps to a disk that fails. In many dumps, each call to the disk fails once, and the disk is full
 * after each possible number of bytes. After each dump, the files in the directory are complete, and the ring
 * still has all samples. The linker replaces the calls to the disk (--wrap), so the tested code does not
 * change.
 */

#include "dumping.h"
#include "fileio/writer_private.h"

#include <liburing.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define SHORT_WRITE 1 /* instead of an errno: the call writes only half of its bytes */

/* The faults of the disk. If all members are zero, the disk has no fault. */
static struct {
	unsigned calls, fails_at; /* number of calls so far; the call that fails */
	int error;		  /* the errno of the call that fails */
	bool no_ring;		  /* io_uring is not available */
	bool limited;		  /* the disk has little free space: */
	uint64_t room;		  /* bytes that are still free */
	uint64_t data_end;	  /* bytes of the dump's file that have space on the disk */
} disk;

#define WRAP(type, name, ...)                                                                                \
	type __real_##name(__VA_ARGS__);                                                                     \
	type __wrap_##name(__VA_ARGS__)
WRAP(int, fr_writer_ring_reap, struct fr_writer *w);
WRAP(int, io_uring_queue_init, unsigned entries, struct io_uring *ring, unsigned flags);
WRAP(ssize_t, pwrite, int fd, const void *data, size_t len, off_t at);
WRAP(ssize_t, write, int fd, const void *data, size_t len);
WRAP(int, fsync, int fd);
WRAP(int, ftruncate, int fd, off_t size);
WRAP(int, fallocate, int fd, int mode, off_t at, off_t len);
WRAP(int, renameat2, int fd, const char *from, int to_fd, const char *to, unsigned flags);
WRAP(int, bpf_prog_get_next_id, uint32_t from, uint32_t *next);

static bool is_hit(void)
{
	return ++disk.calls == disk.fails_at;
}

static bool fails(void)
{
	if (!is_hit() || disk.error == SHORT_WRITE)
		return false;
	errno = disk.error;
	return true;
}

/* Returns how many of the LEN bytes at the offset AT of the dump's file fit on the disk. Only bytes after the
   end of the file need space. */
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

/* Change the result of the next completion of io_uring that the writer takes. */
int __wrap_fr_writer_ring_reap(struct fr_writer *w)
{
	const struct fr_writer_block *b;
	struct io_uring_cqe *cqe;

	assert_int_equal(io_uring_wait_cqe(&w->ring, &cqe), 0);
	b = io_uring_cqe_get_data(cqe);
	if (is_hit())
		cqe->res = disk.error == SHORT_WRITE ? cqe->res / 2 : -disk.error;
	if (disk.limited && cqe->res > 0)
		cqe->res = (int)take_room(b->offset + b->done, (size_t)cqe->res);
	if (disk.limited && cqe->res == 0)
		cqe->res = -ENOSPC;
	return __real_fr_writer_ring_reap(w);
}

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	return disk.no_ring ? -EPERM : __real_io_uring_queue_init(entries, ring, flags);
}

static ssize_t refuse(void)
{
	errno = ENOSPC;
	return -1;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at)
{
	if (disk.error == SHORT_WRITE && disk.calls + 1 == disk.fails_at)
		len = len > 1 ? len / 2 : len;
	if (fails())
		return -1;
	if (disk.limited)
		len = take_room((uint64_t)at, len);
	return len ? __real_pwrite(fd, data, len, at) : refuse();
}

/* Only the sidecar is written by write(). */
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	if (disk.limited) {
		len = FR_MIN(len, disk.room);
		disk.room -= len;
	}
	return len ? __real_write(fd, data, len) : refuse();
}

/* Does not sync. The test does not need a sync, and on a slow disk all syncs together would take minutes. */
int __wrap_fsync(int fd)
{
	return fails() ? -1 : 0;
}

int __wrap_ftruncate(int fd, off_t size)
{
	return fails() ? -1 : __real_ftruncate(fd, size);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t len)
{
	if (disk.limited)
		return (int)refuse();
	return fails() ? -1 : __real_fallocate(fd, mode, at, len);
}

int __wrap_renameat2(int fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return fails() ? -1 : __real_renameat2(fd, from, to_fd, to, flags);
}

/* Hides the BPF programs of this machine, so that each dump of the ring has the same size. */
int __wrap_bpf_prog_get_next_id(uint32_t from, uint32_t *next)
{
	return -ENOENT;
}

/* Makes a ring with RUNS times SAMPLES samples. Its dumps go to a directory in WHERE. */
static struct dumping *start(void **state, const char *where, unsigned runs, unsigned samples)
{
	assert_int_equal(dumping_setup(state, where, runs, samples, false), 0);
	return *state;
}

/* Repair the disk after a test. */
static int teardown(void **state)
{
	memset(&disk, 0, sizeof(disk));
	return *state ? dumping_teardown(state) : 0;
}

FIXTURE(NULL, teardown)

static bool has_sidecar(const struct dumping *f, const struct fr_dump_result *result)
{
	char name[FR_DUMP_NAME_SIZE + 8];
	struct stat st;

	snprintf(name, sizeof(name), "%s.json", result->name);
	return fstatat(f->dirfd, name, &st, 0) == 0;
}

/* Counts how the dumps of a test ended. */
struct ends {
	unsigned none, no_sidecar, whole;
};

/* Make a dump. Check that the dump fails with ERROR and leaves no file, or is complete. Count the result in
   ENDS. */
static void dump_once(struct dumping *f, int error, struct ends *ends)
{
	struct fr_dump_result result = {0};
	int r = dumping_dump(f, &result, NULL);

	disk.limited = false;
	disk.fails_at = 0;
	if (r < 0)
		assert_int_equal(r, -error);
	else if (result.sidecar_error == 0)
		assert_true(has_sidecar(f, &result));
	assert_int_equal(dumping_check_directory(f), r == 0);
	dumping_check_ring(f);
	ends->none += r < 0;
	ends->no_sidecar += r == 0 && result.sidecar_error != 0;
	ends->whole += r == 0 && result.sidecar_error == 0;
}

/* Makes a dump without a fault. Returns its size. Afterwards disk.calls is the number of calls that the dump
   needs. */
static uint64_t measure_dump(struct dumping *f)
{
	struct fr_dump_result result;

	disk.calls = 0;
	assert_int_equal(dumping_dump(f, &result, NULL), 0);
	assert_int_equal(dumping_check_directory(f), 1);
	return result.bytes;
}

static void fail_each_call(struct dumping *f)
{
	static const int errors[] = {EIO, ENOSPC, EINTR, EAGAIN, SHORT_WRITE};

	for (size_t i = 0; i < FR_ARRAY_SIZE(errors); i++) {
		const bool fatal = errors[i] == EIO || errors[i] == ENOSPC;
		struct ends ends = {0};
		unsigned calls;

		(void)measure_dump(f);
		calls = disk.calls;
		for (unsigned call = 1; call <= calls; call += fatal ? 1 : 9) {
			disk.calls = 0;
			disk.fails_at = call;
			disk.error = errors[i];
			dump_once(f, errors[i], &ends);
		}
		print_message("%s: %u calls, %u dumps failed\n",
			errors[i] == SHORT_WRITE ? "short write" : strerror(errors[i]), calls, ends.none);
		assert_true(calls >= 100);
		/* A dump fails if any call fails, except fallocate(), the calls for the sidecar, and the
		   fsync() of the directory. */
		if (fatal)
			assert_true(ends.none + 10 >= calls);
	}
}

/* Make dumps to a disk with space for 0 bytes, STEP bytes, 2 * STEP bytes …, until the dump and its sidecar
 * fit. */
static void fill_disk(struct dumping *f, unsigned step)
{
	const uint64_t size = measure_dump(f);
	struct ends ends = {0};

	for (uint64_t room = 0; !ends.whole; room += step) {
		assert_true(room < size + (64u << 10));
		disk.limited = true;
		disk.room = room;
		disk.data_end = 0;
		dump_once(f, ENOSPC, &ends);
	}
	print_message("%ju bytes: %u times none, %u times without sidecar\n", (uintmax_t)size, ends.none,
		ends.no_sidecar);
	assert_true(ends.none >= size / step && ends.no_sidecar > 100 / step);
}

/* Make dumps with each limit of the file size (RLIMIT_FSIZE). The kernel writes only a part of the write that
   crosses the limit, and refuses the next write. */
static void limit_file_size(struct dumping *f, unsigned step)
{
	const uint64_t size = FR_ALIGN_UP(measure_dump(f), FR_WRITER_ALIGN);
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
	assert_true(ends.none > 0 && ends.whole > 0);
}

TEST(each_call_fails)
{
	fail_each_call(start(state, "/var/tmp", 200, 500));
}

TEST(each_call_fails_without_io_uring)
{
	disk.no_ring = true;
	fail_each_call(start(state, "/var/tmp", 200, 500));
}

/* A tmpfs has no O_DIRECT, but is fast enough for as many dumps as a dump has bytes. */
TEST(disk_is_full_at_each_byte)
{
	fill_disk(start(state, "/dev/shm", 2, 8), 1);
}

/* Without io_uring, the same bytes come in the same blocks. A prime number is enough to cut each of them at
   many places. */
#define STEP_WITHOUT_RING 7

TEST(disk_is_full_without_io_uring)
{
	disk.no_ring = true;
	fill_disk(start(state, "/dev/shm", 2, 8), STEP_WITHOUT_RING);
}

TEST(real_disk_is_full)
{
	fill_disk(start(state, "/var/tmp", 2, 8), 61);
}

TEST(file_size_is_limited_to_each_byte)
{
	limit_file_size(start(state, "/dev/shm", 2, 8), 1);
}

TEST(file_size_is_limited_without_io_uring)
{
	disk.no_ring = true;
	limit_file_size(start(state, "/dev/shm", 2, 8), STEP_WITHOUT_RING);
}

TEST(file_size_is_limited_on_a_real_disk)
{
	limit_file_size(start(state, "/var/tmp", 2, 8), 61);
}
