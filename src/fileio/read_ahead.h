/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reading a file from front to back with several blocks on their way through io_uring, so that the disk works
 * while what came is worked on. Where io_uring cannot be had, the kernel is told of what comes next. One
 * thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_read_ahead;

/* Of FD (borrowed), with at most MEMORY bytes of blocks, none where that is too little for two of them. It
   begins to read with the first call of read(). 0 or -ENOMEM. */
int fr_read_ahead_new(int fd, size_t memory, struct fr_read_ahead **ret);
struct fr_read_ahead *fr_read_ahead_free(struct fr_read_ahead *r); /* waits for what is on its way */

/* LEN bytes at AT into DATA; fewer only at the end of the file. Right behind the last call it is quick; at
   another place it starts anew there. Returns their number or a negative errno. Blocks. CTX is a struct
   fr_read_ahead. */
ssize_t fr_read_ahead_read(void *ctx, void *data, size_t len, uint64_t at);
