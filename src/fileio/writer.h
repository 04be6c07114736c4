/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes a file from front to back in aligned blocks. The kernel writes several blocks at a time, through
 * io_uring, with O_DIRECT where the file system supports it. A block is in flight while the kernel writes it.
 * The writer uses pwrite() where io_uring is forbidden (sysctl, seccomp). Only one thread at a time may use a
 * writer. The functions can wait for the disk.
 *
 *   fr_writer_append() ──► current block ──► in flight, at most `depth` ──► fr_writer_finish(): head, fsync
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
	size_t block_bytes; /* a power of two, 64 KiB … 16 MiB; 0 means 1 MiB */
	unsigned depth;	    /* largest number of blocks in flight, 1 … 64; 0 means 8 */
	/* Estimated size of the file; 0: unknown. For a small file, the writer maps memory for fewer blocks,
	   because to map and unmap all blocks would take most of the time. */
	uint64_t expected_bytes;
};

struct fr_writer;

/* Creates a writer for FD, an empty file that is open with O_RDWR. The caller keeps FD open, and closes it
   later. Uses at most block_bytes × depth of memory. Returns 0; -EINVAL, with a message in D, if a value of
   CONFIG is outside its limits; or -ENOMEM. */
int fr_writer_new(
	int fd, const struct fr_file_writer_config *config, struct fr_writer **ret, struct fr_diag *d);
/* Waits for the blocks in flight, and frees W. W may be NULL. Returns NULL. */
struct fr_writer *fr_writer_free(struct fr_writer *w);

/* Appends LEN bytes. W is a struct fr_writer; its type is void * because the function is used as
   fr_sink.append. If all blocks are in flight, waits for one of them. Returns 0; or a negative errno if the
   write of this or of an earlier block failed. After an error, all calls return the same errno. */
int fr_writer_append(void *w, const void *data, size_t len);

/* Overwrites the first LEN bytes of the file with HEAD. LEN is at most 4096, and at least LEN bytes must have
   been appended. Then truncates the file to the number of appended bytes (which removes the padding of the
   last block), and syncs it. No append may follow. Returns 0 or a negative errno. */
int fr_writer_finish(struct fr_writer *w, const void *head, size_t len);

/* Describes how W writes: "io_uring, O_DIRECT, 8 x 1 MiB", or "pwrite (io_uring: Operation not permitted)". W
   owns the text. */
const char *fr_writer_describe(const struct fr_writer *w);
uint64_t fr_writer_bytes(const struct fr_writer *w);
