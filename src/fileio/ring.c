// SPDX-License-Identifier: GPL-2.0-or-later
#include "fileio/ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Marks completions that are not the caller's. */
static const char of_nobody;

int fr_ring_submit(struct io_uring *ring)
{
	int r;

	do
		r = io_uring_submit(ring);
	while (r == -EINTR);
	if (r < 0)
		return r;
	return io_uring_sq_ready(ring) ? -EAGAIN : 0;
}

/* The kernel reads it when it is submitted, not before: what is there by then is a request for nothing. */
void fr_ring_take_back(struct io_uring_sqe *sqe)
{
	static_assert(IORING_OP_NOP == 0, "all zero");
	memset(sqe, 0, sizeof(*sqe));
	io_uring_sqe_set_data(sqe, (void *)&of_nobody);
}

/* Before Linux 5.19 the kernel does not know this, and the wait goes on. */
static void cancel_all(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		return;
	io_uring_prep_cancel(sqe, NULL, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
	io_uring_sqe_set_data(sqe, (void *)&of_nobody);
	if (fr_ring_submit(ring) < 0)
		fr_ring_take_back(sqe);
}

int fr_ring_wait(struct io_uring *ring, unsigned patience_ms, struct io_uring_cqe **ret)
{
	for (;;) {
		struct __kernel_timespec patience = {patience_ms / 1000, patience_ms % 1000 * 1000000LL};
		int r = io_uring_wait_cqe_timeout(ring, ret, &patience);

		if (r == -ETIME)
			cancel_all(ring);
		else if (r < 0 && r != -EINTR)
			return r;
		else if (r == 0 && io_uring_cqe_get_data(*ret) != &of_nobody)
			return 0;
		else if (r == 0)
			io_uring_cqe_seen(ring, *ret);
	}
}
