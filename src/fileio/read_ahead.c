// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The blocks are a queue: the file from `at` on is in blocks[head], blocks[head + 1] …, each read whole or on
 * its way. A block that has been handed out goes to the queue's end and reads what comes behind the last.
 * Reads are buffered ones: what was written a moment ago is in memory still.
 */

#include "fileio/read_ahead.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "fileio/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN (64u << 10)
#define BLOCK_MAX (512u << 10)
#define DEPTH_MAX 8u

struct block {
	uint8_t *data;
	uint64_t at; /* in the file */
	int result;  /* bytes, or a negative errno */
	bool in_flight;
};

struct fr_read_ahead {
	int fd;
	bool have_ring;
	struct io_uring ring;
	size_t block_bytes;
	unsigned depth, head;
	unsigned in_flight;
	uint8_t *memory;
	struct block blocks[DEPTH_MAX];
	bool started;
	uint64_t at;   /* where the next read is expected */
	uint64_t next; /* what the next block is to read */
};

/* A power of two of which at least two, and as many as make sense, fit. */
static void choose_blocks(struct fr_read_ahead *r, size_t memory)
{
	size_t block = BLOCK_MAX;

	while (block > BLOCK_MIN && memory / block < DEPTH_MAX / 2)
		block /= 2;
	r->block_bytes = block;
	r->depth = (unsigned)FR_MIN(memory / block, (size_t)DEPTH_MAX);
}

int fr_read_ahead_new(int fd, size_t memory, struct fr_read_ahead **ret)
{
	_cleanup_free_ struct fr_read_ahead *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fd = fd;
	choose_blocks(r, memory);
	if (r->depth >= 2 && io_uring_queue_init(r->depth, &r->ring, 0) == 0) {
		r->have_ring = true;
		r->memory = aligned_alloc(4096, r->block_bytes * r->depth);
		if (!r->memory) {
			io_uring_queue_exit(&r->ring);
			return -ENOMEM;
		}
		for (unsigned i = 0; i < r->depth; i++)
			r->blocks[i].data = r->memory + i * r->block_bytes;
	}
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*ret = TAKE_PTR(r);
	return 0;
}

static int reap(struct fr_read_ahead *r)
{
	struct io_uring_cqe *cqe;
	struct block *b;
	int x = fr_ring_wait(&r->ring, FR_RING_PATIENCE_MS, &cqe);

	if (x < 0)
		return x;
	b = io_uring_cqe_get_data(cqe);
	b->result = cqe->res;
	b->in_flight = false;
	io_uring_cqe_seen(&r->ring, cqe);
	r->in_flight--;
	return 0;
}

static int wait_all(struct fr_read_ahead *r)
{
	int x = 0;

	while (r->in_flight > 0 && x == 0)
		x = reap(r);
	return x;
}

struct fr_read_ahead *fr_read_ahead_free(struct fr_read_ahead *r)
{
	if (!r)
		return NULL;
	if (r->have_ring) {
		(void)wait_all(r);
		io_uring_queue_exit(&r->ring);
	}
	/* What the kernel still reads into goes with the process. */
	if (r->in_flight == 0)
		free(r->memory);
	free(r);
	return NULL;
}

/* The next block of the file, into B. A ring that does not take it leaves it to the read that wants it. */
static void start_block(struct fr_read_ahead *r, struct block *b)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);

	b->at = r->next;
	b->result = -EAGAIN;
	r->next += r->block_bytes;
	if (!sqe)
		return;
	io_uring_prep_read(sqe, r->fd, b->data, (unsigned)r->block_bytes, b->at);
	io_uring_sqe_set_data(sqe, b);
	if (fr_ring_submit(&r->ring) < 0) {
		fr_ring_take_back(sqe);
		return;
	}
	b->in_flight = true;
	r->in_flight++;
}

static int start(struct fr_read_ahead *r, uint64_t at)
{
	int x = wait_all(r);

	if (x < 0)
		return x;
	r->started = true;
	r->at = r->next = at;
	r->head = 0;
	for (unsigned i = 0; i < r->depth; i++)
		start_block(r, &r->blocks[i]);
	return 0;
}

/* The front block's bytes, all of them but at the file's end. Their number or a negative errno. */
static ssize_t front(struct fr_read_ahead *r, struct block *b)
{
	int x = 0;

	while (b->in_flight && x == 0)
		x = reap(r);
	if (x < 0)
		return x;
	/* Whole, or the end; a short read and an error may be of the moment: the plain way has the last word.
	 */
	if (b->result != (int)r->block_bytes) {
		ssize_t n = fr_pread_all(r->fd, b->data, r->block_bytes, (off_t)b->at);

		if (n < 0)
			return n;
		b->result = (int)n;
	}
	return b->result;
}

ssize_t fr_read_ahead_read(void *ctx, void *data, size_t len, uint64_t at)
{
	struct fr_read_ahead *r = ctx;
	size_t done = 0;

	if (!r->have_ring)
		return fr_pread_all(r->fd, data, len, (off_t)at);
	if (!r->started || at != r->at) {
		int x = start(r, at);

		if (x < 0)
			return x;
	}
	while (done < len) {
		struct block *b = &r->blocks[r->head];
		ssize_t n = front(r, b);
		size_t from = (size_t)(r->at - b->at), take;

		if (n < 0)
			return n;
		take = FR_MIN(len - done, (size_t)n - FR_MIN(from, (size_t)n));
		memcpy((uint8_t *)data + done, b->data + from, take);
		done += take;
		r->at += take;
		if (from + take < (size_t)n)
			break;
		if ((size_t)n < r->block_bytes)
			break; /* the end: a file that grows is read on by another start */
		start_block(r, b);
		r->head = (r->head + 1) % r->depth;
	}
	return (ssize_t)done;
}
