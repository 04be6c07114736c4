// SPDX-License-Identifier: GPL-2.0-or-later

/* A wait that ends, whatever becomes of what is waited for: a read of a pipe that nobody writes to stands for
   a request that no thread of the kernel takes. */

#include "fileio/ring.h"
#include "base/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#define PATIENCE_MS 50

static void submit_read(struct io_uring *ring, int fd, char *to, void *data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	assert_non_null(sqe);
	io_uring_prep_read(sqe, fd, to, 1, 0);
	io_uring_sqe_set_data(sqe, data);
	assert_int_equal(io_uring_submit(ring), 1);
}

static int wait_for(struct io_uring *ring, void *data)
{
	struct io_uring_cqe *cqe;
	int result;

	assert_int_equal(fr_ring_wait(ring, PATIENCE_MS, &cqe), 0);
	assert_ptr_equal(io_uring_cqe_get_data(cqe), data);
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

static void what_nobody_takes_ends(void **state)
{
	char a = 0;
	struct io_uring ring;
	int fds[2], r = io_uring_queue_init(4, &ring, 0);

	if (r < 0) {
		print_message("no io_uring: %d\n", r);
		skip();
	}
	assert_int_equal(pipe(fds), 0);
	submit_read(&ring, fds[0], &a, &a);
	r = wait_for(&ring, &a);
	assert_true(r == -ECANCELED || r == -EINTR);
	/* The ring is as good as before, and its own completions are not the caller's. */
	submit_read(&ring, fds[0], &a, &a);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(wait_for(&ring, &a), 1);
	assert_int_equal(a, 'x');
	assert_int_equal(io_uring_cq_ready(&ring), 0);
	io_uring_queue_exit(&ring);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_takes_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
