// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int fr_buf_reserve(struct fr_buf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 256;
	uint8_t *p;

	if (b->cap - b->len >= more)
		return 0;
	while (cap - b->len < more) {
		if (cap > SIZE_MAX / 2)
			return -ENOMEM;
		cap *= 2;
	}
	p = realloc(b->data, cap);
	if (!p)
		return -ENOMEM;
	b->data = p;
	b->cap = cap;
	return 0;
}

int fr_buf_append(struct fr_buf *b, const void *data, size_t len)
{
	if (fr_buf_reserve(b, len) < 0)
		return -ENOMEM;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

int fr_buf_append_zero(struct fr_buf *b, size_t len)
{
	if (fr_buf_reserve(b, len) < 0)
		return -ENOMEM;
	if (len)
		memset(b->data + b->len, 0, len);
	b->len += len;
	return 0;
}

int fr_buf_append_u32(struct fr_buf *b, uint32_t v)
{
	return fr_buf_append(b, &v, sizeof(v));
}

int fr_buf_append_u64(struct fr_buf *b, uint64_t v)
{
	return fr_buf_append(b, &v, sizeof(v));
}

void fr_buf_deinit(struct fr_buf *b)
{
	free(b->data);
	*b = (struct fr_buf){0};
}
