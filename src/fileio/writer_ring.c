// SPDX-License-Identifier: GPL-2.0-or-later
#include "fileio/writer_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <sys/uio.h>

void fr_writer_ring_open(struct fr_writer *w)
{
	struct iovec all = {w->memory, w->block_bytes * w->depth};
	int r = io_uring_queue_init(w->depth, &w->ring, 0);

	if (r < 0) {
		w->ring_error = r;
		return;
	}
	w->have_ring = true;
	/* Both only save work: where the locked-memory limit or an old kernel says no, it goes without. */
	w->fixed_buffers = io_uring_register_buffers(&w->ring, &all, 1) == 0;
	w->fixed_file = io_uring_register_files(&w->ring, &w->fd, 1) == 0;
}

void fr_writer_ring_close(struct fr_writer *w)
{
	if (!w->have_ring)
		return;
	while (w->in_flight > 0) {
		struct io_uring_cqe *cqe;

		if (fr_ring_wait(&w->ring, FR_RING_PATIENCE_MS, &cqe) < 0)
			break;
		io_uring_cqe_seen(&w->ring, cqe);
		w->in_flight--;
	}
	/* The ring itself goes some time after its last reference; the file, and the disk blocks of one that
	   was removed, are not to wait for that. */
	if (w->fixed_file)
		(void)io_uring_unregister_files(&w->ring);
	io_uring_queue_exit(&w->ring);
	w->have_ring = false;
}

/* SQE is the newest. Where the kernel does not take it, nothing of it is left in the ring. */
static int submit(struct fr_writer *w, struct io_uring_sqe *sqe)
{
	struct io_uring_cqe *cqe;
	int r = fr_ring_submit(&w->ring);

	if ((r == -EAGAIN || r == -EBUSY) && w->in_flight > 0) {
		/* The kernel is short of something that a completion may give back; once, as that one stays
		   in the ring. */
		(void)fr_ring_wait(&w->ring, FR_RING_PATIENCE_MS, &cqe);
		r = fr_ring_submit(&w->ring);
	}
	if (r < 0)
		fr_ring_take_back(sqe);
	return r;
}

int fr_writer_ring_submit(struct fr_writer *w, struct fr_writer_block *b)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&w->ring);
	const void *from = b->data + b->done;
	unsigned len = (unsigned)(b->len - b->done);
	int fd = w->fixed_file ? 0 : w->fd;
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
	r = submit(w, sqe);
	if (r == 0) {
		b->in_flight = true;
		w->in_flight++;
	}
	return r;
}

/* Take one completion off the ring; RET_DATA is what it was submitted with. */
static int wait_one(struct fr_writer *w, void **ret_data, int *ret_result)
{
	struct io_uring_cqe *cqe;
	int r = fr_ring_wait(&w->ring, FR_RING_PATIENCE_MS, &cqe);

	if (r < 0)
		return r;
	*ret_data = io_uring_cqe_get_data(cqe);
	*ret_result = cqe->res;
	w->n_cancelled += cqe->res == -ECANCELED;
	io_uring_cqe_seen(&w->ring, cqe);
	w->in_flight--;
	return 0;
}

int fr_writer_ring_reap(struct fr_writer *w)
{
	struct fr_writer_block *b;
	void *data;
	int result, r = wait_one(w, &data, &result);

	if (r < 0)
		return r;
	b = data;
	b->in_flight = false;
	switch (result) {
	case -EIO:
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
		return result;
	}
	if (result > 0)
		b->done += FR_MIN((size_t)result, b->len - b->done);
	if (b->done == b->len)
		return 0;
	/* Short writes and other errors (EINTR, EAGAIN, ECANCELED, EINVAL of a file system that takes
	   O_DIRECT only at open): the rest goes the plain way, whose word on it is final. */
	return fr_writer_write_now(w, b);
}

static int sync_plain(const struct fr_writer *w)
{
	return fsync(w->fd) < 0 ? -errno : 0;
}

int fr_writer_ring_sync(struct fr_writer *w)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&w->ring);
	void *data;
	int result, r;

	if (!sqe)
		return sync_plain(w);
	io_uring_prep_fsync(sqe, w->fixed_file ? 0 : w->fd, 0);
	io_uring_sqe_set_data(sqe, w);
	if (w->fixed_file)
		sqe->flags |= IOSQE_FIXED_FILE;
	/* A ring that takes nothing any more, as in write_block(). */
	r = submit(w, sqe);
	if (r < 0)
		return sync_plain(w);
	w->in_flight++;
	r = wait_one(w, &data, &result);
	if (r < 0)
		return r;
	if (result == -EINTR || result == -EAGAIN || result == -EINVAL || result == -ECANCELED)
		return sync_plain(w);
	return result < 0 ? result : 0;
}
