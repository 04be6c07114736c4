// SPDX-License-Identifier: GPL-2.0-or-later
#include "fileio/writer_private.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_DEFAULT (1u << 20)
#define DEPTH_DEFAULT 8u
/* The writer allocates disk space ahead of the blocks, in steps of this size. Otherwise each write would make
   the file longer. For that, the kernel holds the inode lock exclusively, so blocks in flight would wait for
   each other. */
#define ALLOCATE_STEP (64u << 20)
#define HUGE_PAGE ((size_t)2 << 20)

/* Switches O_DIRECT of an open descriptor on or off. Returns whether it is on now. */
static bool set_direct(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return false;
	return fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0 && on;
}

int fr_writer_write_now(struct fr_writer *w, struct fr_writer_block *b)
{
	while (b->done < b->len) {
		ssize_t n = pwrite(w->fd, b->data + b->done, b->len - b->done, (off_t)(b->offset + b->done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EINVAL && w->direct) {
			w->direct = set_direct(w->fd, false);
			continue;
		}
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		b->done += (size_t)n;
		/* After a short write, the rest is not always aligned as O_DIRECT needs it. */
		if (w->direct && b->done % FR_WRITER_ALIGN)
			w->direct = set_direct(w->fd, false);
	}
	return 0;
}

static void update_description(struct fr_writer *w)
{
	char size[FR_UNIT_SIZE];

	if (w->have_ring)
		snprintf(w->text, sizeof(w->text), "io_uring%s%s, %u x %s%s", w->direct ? ", O_DIRECT" : "",
			w->fixed_buffers ? "" : ", buffers not registered", w->depth,
			fr_size_format(w->block_bytes, size),
			w->n_canceled ? "; the kernel did not run some requests" : "");
	else
		snprintf(w->text, sizeof(w->text), "pwrite%s (io_uring: %s)", w->direct ? ", O_DIRECT" : "",
			strerror(-w->ring_error));
}

/* Maps memory for all blocks, with huge pages if possible: the kernel then touches and pins only one
   page for each 2 MiB. */
static int map_blocks(struct fr_writer *w)
{
	const size_t bytes = w->block_bytes * w->depth;
	const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : FR_WRITER_ALIGN;
	void *p;

	w->mapped_bytes = bytes + align;
	p = mmap(NULL, w->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	w->mapped = p;
	w->memory = (uint8_t *)FR_ALIGN_UP((uintptr_t)p, align);
	if (bytes >= HUGE_PAGE)
		(void)madvise(w->memory, bytes, MADV_HUGEPAGE);
	/* Before Linux 5.14, this call fails. Each page is then touched when it is filled. */
	(void)madvise(w->memory, bytes, MADV_POPULATE_WRITE);
	for (unsigned i = 0; i < w->depth; i++)
		w->blocks[i].data = w->memory + i * w->block_bytes;
	w->current = &w->blocks[0];
	return 0;
}

int fr_writer_new(
	int fd, const struct fr_file_writer_config *config, struct fr_writer **ret, struct fr_diag *d)
{
	size_t block = config->block_bytes ? config->block_bytes : BLOCK_DEFAULT;
	unsigned depth = config->depth ? config->depth : DEPTH_DEFAULT;
	const uint64_t expected = config->expected_bytes;
	struct fr_writer *w;
	int r;

	if (block < FR_WRITER_BLOCK_MIN || block > FR_WRITER_BLOCK_MAX || (block & (block - 1)) ||
		depth > FR_WRITER_DEPTH_MAX)
		return fr_fail(d, -EINVAL,
			"use 1 to 64 blocks with a size from 64K to 16M that is a power of two",
			"cannot write with %u blocks of %zu bytes", depth, block);
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct fr_writer){
		.fd = fd, .block_bytes = block, .allocate = true, .allocate_step = ALLOCATE_STEP};
	if (expected && expected < ALLOCATE_STEP) {
		w->allocate_step = FR_ALIGN_UP(expected, block);
		depth = (unsigned)FR_MIN((uint64_t)depth, w->allocate_step / block + 1);
	}
	w->depth = depth;
	r = map_blocks(w);
	if (r < 0) {
		free(w);
		return fr_fail_errno(d, r, NULL, "cannot get %zu bytes for blocks to write", block * depth);
	}
	w->direct = set_direct(fd, true);
	fr_writer_ring_open(w);
	update_description(w);
	*ret = w;
	return 0;
}

struct fr_writer *fr_writer_free(struct fr_writer *w)
{
	if (!w)
		return NULL;
	fr_writer_ring_close(w);
	if (w->direct)
		(void)set_direct(w->fd, false);
	/* If requests are still in flight, the memory stays mapped until the process ends. */
	if (w->in_flight == 0)
		munmap(w->mapped, w->mapped_bytes);
	free(w);
	return NULL;
}

/* Allocates disk space ahead, if END is after the end of the allocated space. If the file system cannot
   allocate space, the writer goes on without allocation. */
static void allocate_to(struct fr_writer *w, uint64_t end)
{
	if (!w->allocate || end <= w->allocated)
		return;
	if (fallocate(w->fd, 0, (off_t)w->allocated, (off_t)w->allocate_step) < 0)
		w->allocate = false;
	else
		w->allocated += w->allocate_step;
	w->allocate_step = ALLOCATE_STEP; /* the file is larger than expected */
}

/* Finds a block that is not in flight. If all blocks are in flight, waits for one of them. */
static int find_free_block(struct fr_writer *w, struct fr_writer_block **ret)
{
	for (;;) {
		int r;

		for (unsigned i = 0; i < w->depth; i++)
			if (!w->blocks[i].in_flight) {
				*ret = &w->blocks[i];
				return 0;
			}
		r = fr_writer_ring_reap(w);
		if (r < 0)
			return r;
	}
}

static int wait_all(struct fr_writer *w)
{
	int r = 0;

	while (w->in_flight > 0 && r == 0)
		r = fr_writer_ring_reap(w);
	return r;
}

static int write_block(struct fr_writer *w, struct fr_writer_block *b, uint64_t offset, size_t len)
{
	int r;

	fr_thread_assert_may_wait();
	b->offset = offset;
	b->len = len;
	b->done = 0;
	if (!w->have_ring)
		return fr_writer_write_now(w, b);
	r = fr_writer_ring_submit(w, b);
	if (r == 0)
		return 0;
	/* The io_uring accepts no more requests. Wait for the requests in flight, and write this block and
	   all later blocks with pwrite(). */
	w->ring_error = r;
	r = wait_all(w);
	fr_writer_ring_close(w);
	return r < 0 ? r : fr_writer_write_now(w, b);
}

/* Starts to write the current block, padded with zeros for O_DIRECT. Then a free block becomes current. */
static int write_current(struct fr_writer *w)
{
	size_t len = FR_ALIGN_UP(w->fill, FR_WRITER_ALIGN);
	uint64_t offset = w->bytes - w->fill;
	int r;

	if (w->fill == 0)
		return 0;
	memset(w->current->data + w->fill, 0, len - w->fill);
	if (offset == 0)
		memcpy(w->head, w->current->data, sizeof(w->head));
	/* Do not allocate for the first block: a small file has no other block. */
	if (offset > 0)
		allocate_to(w, offset + len);
	r = write_block(w, w->current, offset, len);
	w->fill = 0;
	return r < 0 ? r : find_free_block(w, &w->current);
}

int fr_writer_append(void *ctx, const void *data, size_t len)
{
	struct fr_writer *w = ctx;
	const uint8_t *p = data;

	while (len > 0 && w->error == 0) {
		size_t n = FR_MIN(len, w->block_bytes - w->fill);

		memcpy(w->current->data + w->fill, p, n);
		w->fill += n;
		w->bytes += n;
		p += n;
		len -= n;
		if (w->fill == w->block_bytes)
			w->error = write_current(w);
	}
	return w->error;
}

/* Writes the first bytes of the file again, with the head in them. */
static int rewrite_head(struct fr_writer *w, const void *head, size_t len)
{
	memcpy(w->head, head, len);
	memcpy(w->current->data, w->head, sizeof(w->head));
	return write_block(w, w->current, 0, sizeof(w->head));
}

static int finish(struct fr_writer *w, const void *head, size_t len)
{
	const bool first_is_written = w->bytes > w->fill;
	int r;

	if (len > sizeof(w->head) || len > w->bytes)
		return -EINVAL;
	if (!first_is_written && len)
		memcpy(w->current->data, head, len);
	r = write_current(w);
	/* The first block must have been written before its start is overwritten. */
	if (r == 0)
		r = wait_all(w);
	if (r == 0 && first_is_written && len)
		r = rewrite_head(w, head, len);
	if (r == 0)
		r = wait_all(w);
	if (r == 0 && ftruncate(w->fd, (off_t)w->bytes) < 0)
		r = -errno;
	if (r == 0 && fsync(w->fd) < 0)
		r = -errno;
	return r;
}

int fr_writer_finish(struct fr_writer *w, const void *head, size_t len)
{
	fr_thread_assert_may_wait();
	if (w->error == 0)
		w->error = finish(w, head, len);
	update_description(w);
	return w->error;
}

const char *fr_writer_describe(const struct fr_writer *w)
{
	return w->text;
}

uint64_t fr_writer_bytes(const struct fr_writer *w)
{
	return w->bytes;
}
