/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside fileio/: the writer's blocks, and its two ways to write them. */

#include "fileio/ring.h"
#include "fileio/writer.h"

#define FR_WRITER_ALIGN 4096u /* of offsets, lengths and memory for O_DIRECT */

/* A block is filled by append(), or in flight, or free. */
struct fr_writer_block {
	uint8_t *data;
	uint64_t offset;  /* in the file */
	size_t len, done; /* to write, and written; a multiple of FR_WRITER_ALIGN */
	bool in_flight;
};

struct fr_writer {
	int fd;
	size_t block_bytes;
	unsigned depth;
	void *mapped;
	size_t mapped_bytes;
	uint8_t *memory; /* block_bytes × depth, within what is mapped */
	struct fr_writer_block blocks[FR_WRITER_DEPTH_MAX];
	struct fr_writer_block *current; /* never in flight */
	size_t fill;			 /* of the current block */
	uint64_t bytes;			 /* appended */
	uint64_t allocated;		 /* by fallocate(), from 0 */
	uint64_t allocate_step;
	bool allocate;
	uint8_t head[FR_WRITER_ALIGN]; /* of the file, to be rewritten by finish() */
	bool direct;
	int error; /* the first, negative errno */

	bool have_ring, fixed_buffers, fixed_file;
	int ring_error; /* why there is none */
	struct io_uring ring;
	unsigned in_flight;
	unsigned n_cancelled; /* requests that the kernel did not get to, and that were done anew */
	char text[96];
};

/* Write what is left of B with pwrite(), O_DIRECT switched off where it is refused. 0 or a negative errno. */
int fr_writer_write_now(struct fr_writer *w, struct fr_writer_block *b);

/* Set up the ring; where it cannot be had, have_ring stays false and ring_error says why. */
void fr_writer_ring_open(struct fr_writer *w);
void fr_writer_ring_close(struct fr_writer *w);
/* Start writing B. 0 or a negative errno. */
int fr_writer_ring_submit(struct fr_writer *w, struct fr_writer_block *b);
/* Wait for one completion and deal with it: a block that was not wholly written goes on. 0 or a negative
   errno. */
int fr_writer_ring_reap(struct fr_writer *w);
/* fsync, with nothing in flight. 0 or a negative errno. */
int fr_writer_ring_sync(struct fr_writer *w);
