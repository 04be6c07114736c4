// SPDX-License-Identifier: GPL-2.0-or-later
#include "fileio/ring.h"

#include <errno.h>

/* Marks completions that are not the caller's. */
static const char of_cancel;

/* Before Linux 5.19 the kernel does not know this, and the wait goes on. */
static void cancel_all(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		return;
	io_uring_prep_cancel(sqe, NULL, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
	io_uring_sqe_set_data(sqe, (void *)&of_cancel);
	(void)io_uring_submit(ring);
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
		else if (r == 0 && io_uring_cqe_get_data(*ret) != &of_cancel)
			return 0;
		else if (r == 0)
			io_uring_cqe_seen(ring, *ret);
	}
}
