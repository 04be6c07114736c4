/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The asynchronous file writer: append-only, in aligned blocks, several in flight through io_uring with
 * registered buffers and file, O_DIRECT where the file system takes it. Where io_uring is forbidden (sysctl,
 * seccomp) it writes with pwrite(). One thread.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_WRITER_BLOCK_MIN (64u << 10)
#define FR_WRITER_BLOCK_MAX (16u << 20)
#define FR_WRITER_DEPTH_MAX 64u

struct fr_file_writer_config {
	size_t block_bytes;	 /* 0: 1 MiB; a power of two, 64 KiB … 16 MiB */
	unsigned depth;		 /* blocks in flight, 0: 8; 1 … 64 */
	uint64_t expected_bytes; /* of the file, about; 0: not known. A small file takes fewer blocks, as to
				    take and give back memory is most of the time that it needs */
};

struct fr_writer;

/* Writes to FD (borrowed, empty, O_RDWR). Its memory, at most block_bytes × depth, is taken and touched here
   and given back by free. 0, -EINVAL for a configuration outside its limits, -ENOMEM. */
int fr_writer_new(
	int fd, const struct fr_file_writer_config *config, struct fr_writer **ret, struct fr_diag *d);
struct fr_writer *fr_writer_free(struct fr_writer *w); /* waits for what is in flight */

/* All of DATA or a negative errno, which may be of an earlier block, and comes back from then on. Fits
   struct fr_sink's append with CTX = W. Blocks while all blocks are in flight. */
int fr_writer_append(void *w, const void *data, size_t len);

/* Overwrite the first LEN bytes (≤ 4096, already appended) and make the file durable: tail, truncate to size,
   fsync. No append after it. 0 or a negative errno. */
int fr_writer_finish(struct fr_writer *w, const void *head, size_t len);

/* What it does: "io_uring, O_DIRECT, 8 x 1 MiB" or "pwrite (io_uring: Operation not permitted)". Lives as
   long as W. */
const char *fr_writer_describe(const struct fr_writer *w);
uint64_t fr_writer_bytes(const struct fr_writer *w);
