// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A dump that is hit at every point: each call to the disk fails once (through the linker's --wrap, so that
 * the code under test is the code that ships), and the process is killed. Afterwards the directory holds
 * whole files only, and the ring still has everything.
 */

#include "dumping.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "dump/vacuum.h"
#include "fileio/writer_private.h"

#include <errno.h>
#include <liburing.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#define RUN 500u /* samples at once */
#define RUNS 200u
#define POINTS 200u

/* What goes wrong: the call of this number, with this errno; SHORT_WRITE instead of one: half of it. */
#define SHORT_WRITE 1
static struct {
	unsigned calls, at;
	int error;
	bool no_ring;
	int directory; /* the error of each fsync() of a directory */
} fault;

static bool hit(void)
{
	return ++fault.calls == fault.at;
}

int __real_fr_writer_ring_reap(struct fr_writer *w);
int __wrap_fr_writer_ring_reap(struct fr_writer *w);
int __real_fr_writer_ring_sync(struct fr_writer *w);
int __wrap_fr_writer_ring_sync(struct fr_writer *w);
int __real_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at);
int __wrap_fsync(int fd);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __real_fallocate(int fd, int mode, off_t at, off_t len);
int __wrap_fallocate(int fd, int mode, off_t at, off_t len);
int __real_renameat2(int fd, const char *from, int to_fd, const char *to, unsigned flags);
int __wrap_renameat2(int fd, const char *from, int to_fd, const char *to, unsigned flags);

/* The completion that is about to be taken off the ring, with another result. */
static void spoil_completion(struct fr_writer *w)
{
	struct io_uring_cqe *cqe;

	assert_int_equal(io_uring_wait_cqe(&w->ring, &cqe), 0);
	cqe->res = fault.error == SHORT_WRITE ? cqe->res / 2 : -fault.error;
}

int __wrap_fr_writer_ring_reap(struct fr_writer *w)
{
	if (hit())
		spoil_completion(w);
	return __real_fr_writer_ring_reap(w);
}

int __wrap_fr_writer_ring_sync(struct fr_writer *w)
{
	int r = __real_fr_writer_ring_sync(w);

	return hit() && (fault.error == EIO || fault.error == ENOSPC) ? -fault.error : r;
}

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	return fault.no_ring ? -EPERM : __real_io_uring_queue_init(entries, ring, flags);
}

static bool fails(void)
{
	if (!hit() || fault.error == SHORT_WRITE)
		return false;
	errno = fault.error;
	return true;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at)
{
	if (fault.error == SHORT_WRITE && fault.calls + 1 == fault.at)
		len = len > 1 ? len / 2 : len;
	return fails() ? -1 : __real_pwrite(fd, data, len, at);
}

int __wrap_fsync(int fd)
{
	struct stat st;

	if (fault.directory && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		errno = fault.directory;
		return -1;
	}
	return fails() ? -1 : 0; /* no power is cut here, and a slow disk would take minutes */
}

int __wrap_ftruncate(int fd, off_t size)
{
	return fails() ? -1 : __real_ftruncate(fd, size);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t len)
{
	return fails() ? -1 : __real_fallocate(fd, mode, at, len);
}

int __wrap_renameat2(int fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return fails() ? -1 : __real_renameat2(fd, from, to_fd, to, flags);
}

static int setup(void **state)
{
	memset(&fault, 0, sizeof(fault));
	return dumping_setup(state, "/var/tmp", RUNS, RUN);
}

static const char *json_of(const struct fr_dump_result *result)
{
	static char name[FR_DUMP_NAME_SIZE + 8];

	snprintf(name, sizeof(name), "%s.json", result->name);
	return name;
}

/* Each of the calls that a dump makes, or each STEPth, fails once. Returns how many there are. */
static unsigned fail_everywhere(struct dumping *f, int error, unsigned step, unsigned *ret_failed)
{
	struct fr_dump_result result;
	struct stat st;
	unsigned n;

	fault.at = 0;
	fault.calls = 0;
	assert_int_equal(dumping_dump(f, &result), 0);
	assert_int_equal(dumping_check_directory(f, false), 1);
	n = fault.calls;
	for (unsigned i = 1; i <= n; i += step) {
		int r;

		fault.at = i;
		fault.error = error;
		fault.calls = 0;
		r = dumping_dump(f, &result);
		fault.at = 0;
		*ret_failed += r < 0;
		if (r < 0)
			assert_int_equal(r, -error);
		/* A dump that has its name is told as one, with its JSON where that did not fail itself. */
		if (r == 0 && result.sidecar_error == 0)
			assert_int_equal(fstatat(f->dirfd, json_of(&result), &st, 0), 0);
		assert_int_equal(dumping_check_directory(f, false), r == 0);
		dumping_check_ring(f);
	}
	return n;
}

static void each_error(struct dumping *f)
{
	static const int errors[] = {EIO, ENOSPC, EINTR, EAGAIN, SHORT_WRITE};

	for (size_t i = 0; i < FR_ARRAY_SIZE(errors); i++) {
		bool fatal = errors[i] == EIO || errors[i] == ENOSPC;
		unsigned failed = 0, points = fail_everywhere(f, errors[i], fatal ? 1 : 9, &failed);

		print_message("%s: %u calls, %u dumps failed\n",
			errors[i] == SHORT_WRITE ? "short write" : strerror(errors[i]), points, failed);
		assert_true(points >= POINTS / 2);
		if (fatal) /* all but fallocate(), the JSON and the directory's fsync() */
			assert_true(failed + 10 >= points);
	}
}

static void test_ring_fails(void **state)
{
	each_error(*state);
}

static void test_pwrite_fails(void **state)
{
	fault.no_ring = true;
	each_error(*state);
}

/* The file has its name by then, so it is a dump. */
static void test_directory_fails(void **state)
{
	struct dumping *f = *state;
	struct fr_dump_result result;
	struct stat st;

	fault.directory = EIO;
	assert_int_equal(dumping_dump(f, &result), 0);
	fault.directory = 0;
	assert_int_equal(result.not_durable, EIO);
	assert_int_equal(result.sidecar_error, 0);
	assert_int_equal(fstatat(f->dirfd, json_of(&result), &st, 0), 0);
	assert_int_equal(dumping_check_directory(f, false), 1);
}

/* Killed after I of POINTS parts of the time that a dump takes. */
static void test_killed(void **state)
{
	struct dumping *f = *state;
	struct fr_dump_result result;
	unsigned whole = 0, cut = 0, left;
	uint64_t took_ns;

	assert_int_equal(dumping_dump(f, &result), 0);
	took_ns = fr_monotonic_ns();
	assert_int_equal(dumping_dump(f, &result), 0);
	took_ns = fr_monotonic_ns() - took_ns;
	(void)dumping_check_directory(f, false);
	for (unsigned i = 0; i < POINTS; i++) {
		uint64_t delay = took_ns * i / POINTS * 3 / 2;
		struct timespec t = {(time_t)(delay / FR_NSEC_PER_SEC), (long)(delay % FR_NSEC_PER_SEC)};
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(dumping_dump(f, &result) < 0);
		nanosleep(&t, NULL);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
		assert_true(fr_vacuum_leftovers(f->dirfd) >= 0);
		left = dumping_check_directory(f, false);
		assert_true(left <= 1);
		whole += left;
		cut += !left;
	}
	print_message("killed at %u points: %u whole files, %u none\n", POINTS, whole, cut);
	dumping_check_ring(f);
	assert_int_equal(dumping_dump(f, &result), 0);
	assert_int_equal(dumping_check_directory(f, false), 1);
	assert_true(cut > 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, dumping_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ring_fails),
		TEST(test_pwrite_fails),
		TEST(test_directory_fails),
		TEST(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
