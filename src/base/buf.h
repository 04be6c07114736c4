/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A byte string that grows. Zero-initialised is empty. Not for the recorder thread: it allocates. */

#include <stddef.h>
#include <stdint.h>

struct fr_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
};

/* All return 0 or -ENOMEM, and leave the buffer as it was on failure. */
int fr_buf_reserve(struct fr_buf *b, size_t more);
int fr_buf_append(struct fr_buf *b, const void *data, size_t len);
int fr_buf_append_zero(struct fr_buf *b, size_t len);
int fr_buf_append_u32(struct fr_buf *b, uint32_t v); /* host byte order, as perf.data has it */
int fr_buf_append_u64(struct fr_buf *b, uint64_t v);

void fr_buf_deinit(struct fr_buf *b); /* frees, and leaves an empty buffer */
#define _cleanup_buf_ _cleanup_(fr_buf_deinit)
