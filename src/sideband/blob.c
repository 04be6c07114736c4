// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/blob.h"

#include <string.h>

struct fr_blob *fr_blob_get(struct fr_blob_pool *pool, const void *data, size_t len)
{
	struct fr_blob *b;

	HASH_FIND(hh, pool->all, data, len, b);
	if (b)
		return fr_blob_ref(b);
	if (len > UINT32_MAX || pool->bytes + sizeof(*b) + len > pool->bytes_max)
		return NULL;
	b = malloc(sizeof(*b) + len);
	if (!b)
		return NULL;
	b->refs = 1;
	b->len = (uint32_t)len;
	if (len)
		memcpy(b->data, data, len);
	HASH_ADD_KEYPTR(hh, pool->all, b->data, len, b);
	if (!b->hh.tbl) {
		free(b);
		return NULL;
	}
	pool->bytes += sizeof(*b) + len;
	return b;
}

struct fr_blob *fr_blob_ref(struct fr_blob *b)
{
	if (b)
		b->refs++;
	return b;
}

struct fr_blob *fr_blob_unref(struct fr_blob_pool *pool, struct fr_blob *b)
{
	if (!b || --b->refs > 0)
		return NULL;
	HASH_DELETE(hh, pool->all, b);
	pool->bytes -= sizeof(*b) + b->len;
	free(b);
	return NULL;
}
