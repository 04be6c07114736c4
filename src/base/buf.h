/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A byte string that grows. If all members are zeros, the string is empty. The functions allocate memory, so
   they are not for the path of a sample on the recorder thread. */

#include <stddef.h>
#include <stdint.h>

struct fr_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
};

/* fr_buf_reserve() makes room for MORE bytes after the content; the next functions append bytes. All return
   0; or -ENOMEM, and the content has then not changed. */
int fr_buf_reserve(struct fr_buf *b, size_t more);
int fr_buf_append(struct fr_buf *b, const void *data, size_t len);
int fr_buf_append_zero(struct fr_buf *b, size_t len);
int fr_buf_append_u32(struct fr_buf *b, uint32_t v); /* host byte order, like perf.data */
int fr_buf_append_u64(struct fr_buf *b, uint64_t v);

/* Frees the bytes. The buffer is empty then. */
void fr_buf_deinit(struct fr_buf *b);
#define _cleanup_buf_ _cleanup_(fr_buf_deinit)
