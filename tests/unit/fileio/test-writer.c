// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the file writer on real file systems. The file has all bytes that were appended, or the caller
 * gets an error. */

#include "../unit.h"
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
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BLOCK (64u << 10)
#define DEPTH 4u
#define HEAD 104u
#define SIZE (9 * BLOCK + 77) /* bytes of a file that uses all blocks more than once */

static struct fr_file_writer_config config = {.block_bytes = BLOCK, .depth = DEPTH};
static char how[96]; /* the writer's description of how it wrote the last file */

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 2654435761u >> 13 ^ i);
}

static int create_in(const char *dir)
{
	return open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* Writes a head and SIZE bytes in uneven pieces. Returns 0 or the error of the writer. */
static int write_file(int fd, size_t size)
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
	snprintf(how, sizeof(how), "%s", fr_writer_describe(w));
	fr_writer_free(w);
	return r;
}

/* Returns 0, or the line of the check that failed. */
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

/* Writes a file of SIZE bytes in DIR and reads it. Returns 0, a negative errno, or the line of the check that
   failed. */
static int write_and_check(const char *dir, size_t size)
{
	_cleanup_close_ int fd = create_in(dir);
	int r = fd < 0 ? -errno : write_file(fd, size);

	return r ? r : check_content(fd, size);
}

TEST(file_has_what_was_appended)
{
	static const size_t sizes[] = {0, 1, HEAD, 4095, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK,
		DEPTH * BLOCK - 1, DEPTH * BLOCK, DEPTH * BLOCK + 1, 50 * BLOCK + 12345};
	static const struct {
		const char *dir;
		uint64_t expected_bytes;
	} cases[] = {{"/var/tmp", 0}, {"/var/tmp", 1}, {"/var/tmp", BLOCK}, {"/var/tmp", 3 * BLOCK},
		{"/var/tmp", 1ULL << 40}, {"/dev/shm", 0}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		config.expected_bytes = cases[i].expected_bytes;
		for (size_t k = 0; k < FR_ARRAY_SIZE(sizes); k++)
			assert_int_equal(write_and_check(cases[i].dir, sizes[k]), 0);
	}
	config.expected_bytes = 0;
}

/* The fault of the io_uring. A test sets it, and all_well() resets it. */
static struct {
	unsigned accepts;   /* number of submissions before the fault */
	unsigned n_refused; /* number of submissions that then fail with REFUSAL */
	int refusal; /* a negative errno. After any but -EAGAIN, a refused request must not come again */
	bool hangs;  /* the fault is, instead of a refusal, one request that never starts */
	unsigned n_timeouts;  /* number of waits that end at once with -ETIME */
	unsigned n_left_over; /* number of refused requests that are still in the submission queue */
} fault = {.accepts = UINT_MAX};
static int silent_pipe[2];

static void all_well(void)
{
	memset(&fault, 0, sizeof(fault));
	fault.accepts = UINT_MAX;
}

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __real_io_uring_wait_cqe_timeout(
	struct io_uring *ring, struct io_uring_cqe **cqe, struct __kernel_timespec *ts);
int __wrap_io_uring_wait_cqe_timeout(
	struct io_uring *ring, struct io_uring_cqe **cqe, struct __kernel_timespec *ts);

static struct io_uring_sqe *pending(const struct io_uring *ring, unsigned i)
{
	return &ring->sq.sqes[(*ring->sq.khead + i) & *ring->sq.kring_mask];
}

/* Makes SQE a request that does not end: a read from a pipe that nobody writes to. It acts as a request that
   no thread of the kernel starts. */
static void make_hang(struct io_uring_sqe *sqe)
{
	static char byte;
	const uint64_t owner = sqe->user_data;

	io_uring_prep_read(sqe, silent_pipe[0], &byte, 1, 0);
	sqe->user_data = owner;
}

int __wrap_io_uring_submit(struct io_uring *ring)
{
	const unsigned n = io_uring_sq_ready(ring);

	if (fault.accepts == 0 && fault.n_refused > 0) {
		fault.n_refused -= fault.n_refused != UINT_MAX;
		fault.n_left_over = n;
		return fault.refusal;
	}
	/* The writer has written the blocks of these requests in another way, and may have filled their
	   memory with other bytes since. So it must have made the requests NOPs. */
	if (fault.refusal != -EAGAIN)
		for (unsigned i = 0; i < fault.n_left_over; i++)
			assert_int_equal(pending(ring, i)->opcode, IORING_OP_NOP);
	fault.n_left_over = 0;
	/* On a slow machine, the request may be one to cancel. Then the next request hangs. */
	if (fault.accepts == 0 && fault.hangs && pending(ring, n - 1)->opcode != IORING_OP_ASYNC_CANCEL) {
		make_hang(pending(ring, n - 1));
		fault.hangs = false;
	}
	fault.accepts -= fault.accepts != UINT_MAX && fault.accepts > 0;
	return __real_io_uring_submit(ring);
}

int __wrap_io_uring_wait_cqe_timeout(
	struct io_uring *ring, struct io_uring_cqe **cqe, struct __kernel_timespec *ts)
{
	struct __kernel_timespec short_time = {0, 50 * 1000000};

	if (fault.n_timeouts > 0) {
		fault.n_timeouts--;
		return -ETIME;
	}
	return __real_io_uring_wait_cqe_timeout(ring, cqe, &short_time);
}

/* The fault comes at another block in each turn. In one of the turns, it comes at the head of the file. */
TEST(file_is_whole_when_the_ring_fails)
{
	for (unsigned i = 0; i < 14; i++) {
		/* The kernel accepts no more requests. */
		all_well();
		fault.accepts = i;
		fault.n_refused = UINT_MAX;
		fault.refusal = -EAGAIN;
		assert_int_equal(write_and_check("/var/tmp", SIZE), 0);
		/* The kernel refuses one request, and accepts a later request, which cancels others. */
		all_well();
		fault.accepts = i + 1;
		fault.n_refused = fault.n_timeouts = 1;
		fault.refusal = -ENOMEM;
		assert_int_equal(write_and_check("/var/tmp", SIZE), 0);
	}
	all_well();
}

TEST(request_that_never_starts_is_canceled)
{
	assert_int_equal(write_and_check("/var/tmp", SIZE), 0);
	if (strncmp(how, "io_uring", strlen("io_uring")) != 0)
		unit_skip("written with %s", how);
	assert_int_equal(pipe2(silent_pipe, O_CLOEXEC), 0);
	for (unsigned i = 0; i < 11; i++) {
		all_well();
		fault.accepts = i;
		fault.hangs = true;
		assert_int_equal(write_and_check("/var/tmp", SIZE), 0);
		assert_false(fault.hangs);
		assert_non_null(strstr(how, "the kernel did not run some requests"));
	}
	all_well();
	close(silent_pipe[0]);
	close(silent_pipe[1]);
}

TEST(bad_configuration_is_refused)
{
	static const struct fr_file_writer_config bad[] = {{.block_bytes = BLOCK - 1},
		{.block_bytes = BLOCK + 4096}, {.block_bytes = BLOCK / 2}, {.block_bytes = 32u << 20},
		{.depth = 65}};
	_cleanup_close_ int fd = create_in("/var/tmp");
	struct fr_writer *w = NULL;

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		struct fr_diag d = {0};

		assert_int_equal(fr_writer_new(fd, &bad[i], &w, &d), -EINVAL);
		assert_true(d.hint[0]);
	}
	assert_null(w);
	assert_null(fr_writer_free(NULL));
}

/* fr_writer_free() waits for the blocks that the kernel is writing, and only then frees their memory. */
TEST(writer_is_freed_with_blocks_in_flight)
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

enum { PASS = 0, SKIP = 77 };

/* Runs BODY in a child, because it changes the limits and the namespaces of its process. It must return 0. */
static void run_in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP)
		unit_skip("it needs root, or seccomp filters");
	assert_int_equal(status, PASS);
}

static int forbid_io_uring(void)
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
	static const size_t sizes[] = {0, 1, 4097, BLOCK, SIZE};

	if (forbid_io_uring() < 0)
		return SKIP;
	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); i++)
		if (write_and_check("/var/tmp", sizes[i]) != 0)
			return 1;
	return strncmp(how, "pwrite", 6) == 0 && strstr(how, "(io_uring: Operation not permitted)") ? PASS
												    : 2;
}

TEST(pwrite_is_used_where_io_uring_is_forbidden)
{
	run_in_child(without_io_uring);
}

/* Without CAP_IPC_LOCK, registered buffers count against RLIMIT_MEMLOCK. */
static int without_locked_memory(void)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_MEMLOCK, &none) < 0 || setresuid(65534, 65534, 65534) < 0)
		return SKIP;
	return write_and_check("/var/tmp", SIZE) == 0 ? PASS : 1;
}

TEST(file_is_written_without_locked_memory)
{
	run_in_child(without_locked_memory);
}
