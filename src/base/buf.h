/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A byte string that grows. If all members are zeros, the string is empty. The functions allocate memory, so
   the recorder thread must not call them for each sample. */

#include <stddef.h>
#include <stdint.h>

struct fr_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
};

/* fr_buf_reserve() makes room for more bytes after the content, and fr_buf_append*() append bytes. These
   functions return 0; or -ENOMEM, without a change of the content. */
int fr_buf_reserve(struct fr_buf *b, size_t more);
int fr_buf_append(struct fr_buf *b, const void *data, size_t len);
int fr_buf_append_zero(struct fr_buf *b, size_t len);
int fr_buf_append_u32(struct fr_buf *b, uint32_t v); /* host byte order, like perf.data */
int fr_buf_append_u64(struct fr_buf *b, uint64_t v);

/* Frees the bytes, and makes the buffer empty. */
void fr_buf_deinit(struct fr_buf *b);
#define _cleanup_buf_ _cleanup_(fr_buf_deinit)
