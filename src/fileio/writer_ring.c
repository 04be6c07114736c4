// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The io_uring of the writer. A block takes this way:
 *
 *   fr_writer_ring_submit() ──► kernel ──► fr_writer_ring_reap() ──► written, or fr_writer_write_now()
 *
 * io_uring has two faults (docs/design/80). First, a request that the kernel refuses stays in the queue, and
 * the next submit would send it. So the writer turns a refused request into a request that does nothing.
 * Second, sometimes no thread of the kernel starts a request. So if no request completes for PATIENCE_MS, the
 * writer cancels the requests that the kernel has not started.
 */

#include "fileio/writer_private.h"
#include "base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define PATIENCE_MS 5000u

/* The user data of requests that belong to no block, and whose completions are ignored. */
static const char no_answer;

void fr_writer_ring_open(struct fr_writer *w)
{
	struct iovec all = {w->memory, w->block_bytes * w->depth};
	int r = io_uring_queue_init(w->depth, &w->ring, 0);

	if (r < 0) {
		w->ring_error = r;
		return;
	}
	w->have_ring = true;
	/* These two calls only save work, so their errors are ignored. They can fail because of the limit of
	   locked memory, or because the kernel is too old. */
	w->fixed_buffers = io_uring_register_buffers(&w->ring, &all, 1) == 0;
	w->fixed_file = io_uring_register_files(&w->ring, &w->fd, 1) == 0;
}

static int submit_all(struct io_uring *ring)
{
	int r;

	do
		r = io_uring_submit(ring);
	while (r == -EINTR);
	if (r < 0)
		return r;
	return io_uring_sq_ready(ring) ? -EAGAIN : 0;
}

/* Turns a request that the kernel has not read yet into a request that does nothing. */
static void make_noop(struct io_uring_sqe *sqe)
{
	static_assert(IORING_OP_NOP == 0, "all zero");
	memset(sqe, 0, sizeof(*sqe));
	io_uring_sqe_set_data(sqe, (void *)&no_answer);
}

/* Ends the requests that the kernel has not started; their result is -ECANCELED. Before Linux 5.19,
   this does nothing. */
static void cancel_waiting(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		return;
	io_uring_prep_cancel(sqe, NULL, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
	io_uring_sqe_set_data(sqe, (void *)&no_answer);
	if (submit_all(ring) < 0)
		make_noop(sqe);
}

/* Waits for a completion. The caller has to mark *RET as seen. Returns 0 or a negative errno. */
static int wait_completion(struct io_uring *ring, struct io_uring_cqe **ret)
{
	for (;;) {
		struct __kernel_timespec patience = {PATIENCE_MS / 1000, PATIENCE_MS % 1000 * 1000000LL};
		int r = io_uring_wait_cqe_timeout(ring, ret, &patience);

		if (r == -ETIME)
			cancel_waiting(ring);
		else if (r < 0 && r != -EINTR)
			return r;
		else if (r == 0 && io_uring_cqe_get_data(*ret) != &no_answer)
			return 0;
		else if (r == 0)
			io_uring_cqe_seen(ring, *ret);
	}
}

void fr_writer_ring_close(struct fr_writer *w)
{
	if (!w->have_ring)
		return;
	while (w->in_flight > 0) {
		struct io_uring_cqe *cqe;

		if (wait_completion(&w->ring, &cqe) < 0)
			break;
		io_uring_cqe_seen(&w->ring, cqe);
		w->in_flight--;
	}
	/* The kernel frees an io_uring some time after its last reference is gone. A registered file would
	   stay open for this time. If the file was removed, its disk blocks would stay in use. So unregister
	   the file here. */
	if (w->fixed_file)
		(void)io_uring_unregister_files(&w->ring);
	io_uring_queue_exit(&w->ring);
	w->have_ring = false;
}

int fr_writer_ring_submit(struct fr_writer *w, struct fr_writer_block *b)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&w->ring);
	const void *from = b->data + b->done;
	unsigned len = (unsigned)(b->len - b->done);
	int fd = w->fixed_file ? 0 : w->fd;
	struct io_uring_cqe *cqe;
	int r;

	if (!sqe)
		return fr_writer_write_now(w, b);
	if (w->fixed_buffers)
		io_uring_prep_write_fixed(sqe, fd, from, len, b->offset + b->done, 0);
	else
		io_uring_prep_write(sqe, fd, from, len, b->offset + b->done);
	if (w->fixed_file)
		sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(sqe, b);
	r = submit_all(&w->ring);
	if ((r == -EAGAIN || r == -EBUSY) && w->in_flight > 0) {
		/* When a request completes, the kernel can get back memory that it needs for the new request.
		   The completion is not marked as seen here, so a second wait would return at once: try only
		   once. */
		(void)wait_completion(&w->ring, &cqe);
		r = submit_all(&w->ring);
	}
	if (r < 0)
		make_noop(sqe);
	b->in_flight = r == 0;
	w->in_flight += b->in_flight;
	return r;
}

int fr_writer_ring_reap(struct fr_writer *w)
{
	struct fr_writer_block *b;
	struct io_uring_cqe *cqe;
	int result, r = wait_completion(&w->ring, &cqe);

	if (r < 0)
		return r;
	b = io_uring_cqe_get_data(cqe);
	result = cqe->res;
	w->n_canceled += result == -ECANCELED;
	io_uring_cqe_seen(&w->ring, cqe);
	w->in_flight--;
	b->in_flight = false;
	if (result == -EIO || result == -ENOSPC || result == -EDQUOT || result == -EFBIG)
		return result;
	if (result > 0)
		b->done += FR_MIN((size_t)result, b->len - b->done);
	/* Short writes and other errors (EINTR, EAGAIN, ECANCELED, EINVAL of a file system that takes
	   O_DIRECT only at open) are left to pwrite(), whose error is final. */
	return b->done == b->len ? 0 : fr_writer_write_now(w, b);
}
