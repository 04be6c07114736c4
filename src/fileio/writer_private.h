/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by writer.c (blocks, pwrite) and writer_ring.c (io_uring). */

#include "fileio/writer.h"

#include <liburing.h>

#define FR_WRITER_ALIGN 4096u /* alignment of offsets, lengths and memory for O_DIRECT */

/* A block is current (append fills it), in flight, or free. */
struct fr_writer_block {
	uint8_t *data;
	uint64_t offset;  /* place in the file */
	size_t len, done; /* len: bytes to write, a multiple of FR_WRITER_ALIGN; done: written bytes */
	bool in_flight;
};

struct fr_writer {
	int fd;
	size_t block_bytes;
	unsigned depth;
	void *mapped;
	size_t mapped_bytes;
	uint8_t *memory; /* block_bytes × depth, aligned, inside of MAPPED */
	struct fr_writer_block blocks[FR_WRITER_DEPTH_MAX];
	struct fr_writer_block *current;
	size_t fill;	    /* bytes in the current block */
	uint64_t bytes;	    /* appended bytes */
	uint64_t allocated; /* number of bytes from the start of the file that fallocate() has allocated */
	uint64_t allocate_step;
	bool allocate;
	uint8_t head[FR_WRITER_ALIGN]; /* a copy of the first bytes of the file, for fr_writer_finish() */
	bool direct;
	int error; /* the first error, a negative errno */

	bool have_ring, fixed_buffers, fixed_file;
	int ring_error; /* a negative errno: why there is no io_uring */
	struct io_uring ring;
	unsigned in_flight;
	unsigned n_canceled; /* requests that the kernel did not start */
	char text[96];
};

/* Writes the rest of B with pwrite(), and without O_DIRECT if the file system refuses O_DIRECT. Returns 0 or
   a negative errno. */
int fr_writer_write_now(struct fr_writer *w, struct fr_writer_block *b);

/* Sets up the io_uring. If this fails, have_ring stays false, and ring_error has the reason. */
void fr_writer_ring_open(struct fr_writer *w);
/* Waits for the requests in flight, and frees the io_uring. */
void fr_writer_ring_close(struct fr_writer *w);
/* Starts to write B. Returns 0; or a negative errno, and B is then not in flight. */
int fr_writer_ring_submit(struct fr_writer *w, struct fr_writer_block *b);
/* Waits for one completion. If the kernel did not write all of the block, pwrite() writes the rest. Returns 0
   or a negative errno. */
int fr_writer_ring_reap(struct fr_writer *w);
