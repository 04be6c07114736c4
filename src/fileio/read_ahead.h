/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads a file from front to back while the disk already works on what comes next: the kernel is asked to
 * read into its page cache before the bytes are wanted. One thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_read_ahead;

/* Reads FD (borrowed), at most AHEAD_BYTES ahead; 0 leaves it to the kernel. Returns 0 or -ENOMEM. */
int fr_read_ahead_new(int fd, size_t ahead_bytes, struct fr_read_ahead **ret);
/* Accepts NULL; returns NULL. */
struct fr_read_ahead *fr_read_ahead_free(struct fr_read_ahead *r);

/* Reads LEN bytes at AT into DATA. CTX is a struct fr_read_ahead. Waits for the disk. Returns the number of
   bytes, smaller than LEN only at the end of the file, or a negative errno. */
ssize_t fr_read_ahead_read(void *ctx, void *data, size_t len, uint64_t at);
