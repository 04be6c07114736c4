// SPDX-License-Identifier: GPL-2.0-or-later

/* The asynchronous writer on real file systems: what is read back is what was given, or an error is told. */

#include "fileio/writer.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>

#define BLOCK (64u << 10)
#define DEPTH 4u
#define HEAD 104u

static struct fr_file_writer_config config = {.block_bytes = BLOCK, .depth = DEPTH};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 2654435761u >> 13 ^ i);
}

static int create_in(const char *dir)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/flightrec-writer.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* SIZE bytes in uneven pieces; 0 or the error. */
static int write_size(int fd, size_t size, char *ret_how, size_t how_size)
{
	static const size_t steps[] = {1, 7, 4096, 100000, 8, 65536, 3};
	_cleanup_free_ uint8_t *data = malloc(size + 1);
	uint8_t head[HEAD];
	struct fr_writer *w;
	size_t at = 0;
	int r = fr_writer_new(fd, &config, &w, NULL);

	if (r < 0)
		return r;
	for (size_t i = 0; i < size; i++)
		data[i] = byte_at(i);
	memset(head, 0xee, sizeof(head));
	for (unsigned i = 0; at < size && r == 0; i++) {
		size_t n = FR_MIN(steps[i % FR_ARRAY_SIZE(steps)], size - at);

		r = fr_writer_append(w, data + at, n);
		at += n;
	}
	if (r == 0)
		r = fr_writer_finish(w, head, FR_MIN(size, sizeof(head)));
	if (r == 0 && fr_writer_bytes(w) != size)
		r = -EPROTO;
	if (ret_how)
		snprintf(ret_how, how_size, "%s", fr_writer_describe(w));
	fr_writer_free(w);
	return r;
}

/* 0, or the line that did not hold. */
static int check_content(int fd, size_t size)
{
	_cleanup_free_ uint8_t *data = malloc(size + 1);
	struct stat st;

	if (fstat(fd, &st) < 0 || (size_t)st.st_size != size)
		return __LINE__;
	if (fcntl(fd, F_GETFL) & O_DIRECT)
		return __LINE__;
	if (fr_pread_all(fd, data, size, 0) != (ssize_t)size)
		return __LINE__;
	for (size_t i = 0; i < size; i++)
		if (data[i] != (i < HEAD ? 0xee : byte_at(i)))
			return __LINE__;
	return 0;
}

static void all_sizes(const char *dir)
{
	static const size_t sizes[] = {0, 1, HEAD, 4095, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK,
		DEPTH * BLOCK - 1, DEPTH * BLOCK, DEPTH * BLOCK + 1, 50 * BLOCK + 12345};

	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); i++) {
		_cleanup_close_ int fd = create_in(dir);

		if (fd < 0) {
			print_message("cannot create a file in %s: skipped\n", dir);
			skip();
		}
		assert_int_equal(write_size(fd, sizes[i], NULL, 0), 0);
		assert_int_equal(check_content(fd, sizes[i]), 0);
	}
}

static void test_disk(void **state)
{
	all_sizes("/var/tmp");
}

static void test_tmpfs(void **state)
{
	all_sizes("/dev/shm");
}

/* A ring that takes no more after so many submissions, or for so many of them. */
static unsigned submissions = UINT_MAX, refusals = UINT_MAX;
static unsigned refused; /* requests in the ring that were refused */
static int refusal = -EAGAIN;
static unsigned timeouts; /* of the next waits */

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __real_io_uring_wait_cqe_timeout(
	struct io_uring *ring, struct io_uring_cqe **cqe, struct __kernel_timespec *ts);
int __wrap_io_uring_wait_cqe_timeout(
	struct io_uring *ring, struct io_uring_cqe **cqe, struct __kernel_timespec *ts);

static const struct io_uring_sqe *pending(const struct io_uring *ring, unsigned i)
{
	return &ring->sq.sqes[(*ring->sq.khead + i) & *ring->sq.kring_mask];
}

int __wrap_io_uring_submit(struct io_uring *ring)
{
	const unsigned n = io_uring_sq_ready(ring);

	if (submissions == 0 && refusals > 0) {
		refusals -= refusals != UINT_MAX;
		refused = n;
		return refusal;
	}
	/* Who was refused has written it elsewise by now, or has filled the memory anew. */
	if (refusal != -EAGAIN)
		for (unsigned i = 0; i < refused; i++)
			assert_int_equal(pending(ring, i)->opcode, IORING_OP_NOP);
	refused = 0;
	submissions -= submissions != UINT_MAX && submissions > 0;
	return __real_io_uring_submit(ring);
}

int __wrap_io_uring_wait_cqe_timeout(
	struct io_uring *ring, struct io_uring_cqe **cqe, struct __kernel_timespec *ts)
{
	if (timeouts > 0) {
		timeouts--;
		return -ETIME;
	}
	return __real_io_uring_wait_cqe_timeout(ring, cqe, ts);
}

/* Wherever the ring gives up, at a block, at the head or at the fsync, the file is written without it. */
static void test_ring_gives_up(void **state)
{
	const size_t size = 9 * BLOCK + 77;

	for (unsigned i = 0; i < 14; i++) {
		_cleanup_close_ int fd = create_in("/var/tmp");

		submissions = i;
		assert_int_equal(write_size(fd, size, NULL, 0), 0);
		submissions = UINT_MAX;
		assert_int_equal(check_content(fd, size), 0);
	}
}

/* It gives up once, and takes again what comes later, as the request to cancel what a wait has been too long
   for: nothing of what it refused goes with that. */
static void test_refused_once(void **state)
{
	const size_t size = 9 * BLOCK + 77;

	refusal = -ENOMEM;
	for (unsigned i = 1; i < 14; i++) {
		_cleanup_close_ int fd = create_in("/var/tmp");

		submissions = i;
		refusals = timeouts = 1;
		refused = 0;
		assert_int_equal(write_size(fd, size, NULL, 0), 0);
		assert_int_equal(check_content(fd, size), 0);
	}
	submissions = refusals = UINT_MAX;
	timeouts = 0;
	refusal = -EAGAIN;
}

/* What was expected of the file's size changes how much memory it takes, and nothing else. */
static void test_expected_size(void **state)
{
	static const uint64_t expected[] = {1, BLOCK, 3 * BLOCK, 1ULL << 40};

	for (size_t i = 0; i < FR_ARRAY_SIZE(expected); i++) {
		config.expected_bytes = expected[i];
		all_sizes("/var/tmp");
	}
	config.expected_bytes = 0;
}

static void test_configuration(void **state)
{
	static const struct fr_file_writer_config bad[] = {{.block_bytes = BLOCK - 1},
		{.block_bytes = BLOCK + 4096}, {.block_bytes = BLOCK / 2}, {.block_bytes = 32u << 20},
		{.depth = 65}};
	_cleanup_close_ int fd = create_in("/var/tmp");
	struct fr_diag d = {0};
	struct fr_writer *w = NULL;

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(fr_writer_new(fd, &bad[i], &w, NULL), -EINVAL);
	assert_int_equal(fr_writer_new(fd, &bad[0], &w, &d), -EINVAL);
	assert_true(d.hint[0]);
	assert_null(w);
	assert_null(fr_writer_free(NULL));
}

/* Half-written, then dropped: nothing may be in flight over freed memory. */
static void test_free_in_flight(void **state)
{
	_cleanup_close_ int fd = create_in("/var/tmp");
	_cleanup_free_ uint8_t *data = calloc(1, 3 * BLOCK);
	struct fr_writer *w;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(fr_writer_new(fd, &config, &w, NULL), 0);
		assert_int_equal(fr_writer_append(w, data, 3 * BLOCK), 0);
		fr_writer_free(w);
	}
}

/* Runs BODY in a child, which may spoil its own limits and namespaces: its exit status. */
static int in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum { PASS = 0, SKIP = 77 };

static int refuse_io_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {FR_ARRAY_SIZE(code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

static int without_io_uring(void)
{
	static const size_t sizes[] = {0, 1, 4097, BLOCK, 9 * BLOCK + 77};
	char how[96] = "";

	if (refuse_io_uring() < 0)
		return SKIP;
	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); i++) {
		_cleanup_close_ int fd = create_in("/var/tmp");

		if (write_size(fd, sizes[i], how, sizeof(how)) != 0 || check_content(fd, sizes[i]) != 0)
			return 1;
	}
	return strncmp(how, "pwrite", 6) == 0 && strstr(how, "(io_uring: Operation not permitted)") ? PASS
												    : 2;
}

static void test_without_io_uring(void **state)
{
	int r = in_child(without_io_uring);

	if (r == SKIP) {
		print_message("seccomp filters are not to be had: skipped\n");
		skip();
	}
	assert_int_equal(r, PASS);
}

/* A registered buffer counts against RLIMIT_MEMLOCK for who has no CAP_IPC_LOCK; with none at all it has to
   go without. */
static int without_locked_memory(void)
{
	const struct rlimit none = {0, 0};
	_cleanup_close_ int fd = create_in("/var/tmp");

	if (fd < 0 || setrlimit(RLIMIT_MEMLOCK, &none) < 0 || setresuid(65534, 65534, 65534) < 0)
		return SKIP;
	if (write_size(fd, 9 * BLOCK + 5, NULL, 0) != 0)
		return 1;
	return check_content(fd, 9 * BLOCK + 5);
}

static void test_without_locked_memory(void **state)
{
	int r = in_child(without_locked_memory);

	if (r == SKIP) {
		print_message("not root: skipped\n");
		skip();
	}
	assert_int_equal(r, PASS);
}

static int on_full_file_system(void)
{
	int fd, r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("flightrec-test", "/mnt", "tmpfs", 0, "size=1M") < 0)
		return SKIP;
	fd = create_in("/mnt");
	r = write_size(fd, 40 * BLOCK, NULL, 0);
	close(fd);
	if (r != -ENOSPC)
		return 1;
	/* What fits still goes. */
	fd = create_in("/mnt");
	if (write_size(fd, 10 * BLOCK, NULL, 0) != 0)
		return 2;
	return check_content(fd, 10 * BLOCK) ? 3 : PASS;
}

static void test_full_file_system(void **state)
{
	int r = in_child(on_full_file_system);

	if (r == SKIP) {
		print_message("no mount namespace for a small tmpfs: skipped\n");
		skip();
	}
	assert_int_equal(r, PASS);
}

/* The limit lies inside a block: a short write first, then the error. */
static int past_file_size_limit(void)
{
	const struct rlimit limit = {2 * BLOCK + 4096, 2 * BLOCK + 4096};
	_cleanup_close_ int fd = create_in("/var/tmp");

	signal(SIGXFSZ, SIG_IGN);
	if (fd < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return SKIP;
	return write_size(fd, 12 * BLOCK, NULL, 0) == -EFBIG ? PASS : 1;
}

static void test_file_size_limit(void **state)
{
	assert_int_equal(in_child(past_file_size_limit), PASS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk),
		cmocka_unit_test(test_tmpfs),
		cmocka_unit_test(test_expected_size),
		cmocka_unit_test(test_ring_gives_up),
		cmocka_unit_test(test_refused_once),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_free_in_flight),
		cmocka_unit_test(test_without_io_uring),
		cmocka_unit_test(test_without_locked_memory),
		cmocka_unit_test(test_full_file_system),
		cmocka_unit_test(test_file_size_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
