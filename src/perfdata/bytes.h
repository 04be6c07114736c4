/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A reader that takes bytes from the front, a builder that makes a section from parts, and a set of byte
 * strings. Reader and builder remember a failure, so the caller checks once, at the end.
 */

#include "base/buf.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The bytes that are left to read. A read past the end sets `failed`. After that, all reads return NULL or
   0. */
struct byte_reader {
	const uint8_t *p;
	size_t left;
	bool failed;
};

static inline const void *read_bytes(struct byte_reader *r, uint64_t len)
{
	const uint8_t *p = r->p;

	r->failed |= len > r->left;
	if (r->failed)
		return NULL;
	r->p += len;
	r->left -= len;
	return p;
}

static inline uint32_t read_u32(struct byte_reader *r)
{
	const void *p = read_bytes(r, sizeof(uint32_t));
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t read_u64(struct byte_reader *r)
{
	const void *p = read_bytes(r, sizeof(uint64_t));
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

/* Reads a string with its NUL. Returns the string; or NULL if there is no NUL in the bytes that are left. */
static inline const char *read_string(struct byte_reader *r)
{
	const uint8_t *end = r->left ? memchr(r->p, '\0', r->left) : NULL;

	return read_bytes(r, end ? (uint64_t)(end - r->p) + 1 : UINT64_MAX);
}

/* A section under construction. If all members are zeros, the section is empty. */
struct builder {
	struct fr_buf buf;
	bool failed; /* out of memory */
};

static inline void put_bytes(struct builder *b, const void *data, size_t len)
{
	b->failed |= fr_buf_append(&b->buf, data, len) < 0;
}

static inline void put_zeros(struct builder *b, size_t len)
{
	b->failed |= fr_buf_append_zero(&b->buf, len) < 0;
}

static inline void put_u32(struct builder *b, uint32_t v)
{
	put_bytes(b, &v, sizeof(v));
}

static inline void put_u64(struct builder *b, uint64_t v)
{
	put_bytes(b, &v, sizeof(v));
}

/* Overwrites bytes that were put earlier, such as the number of items, which is known only after the
   items. */
static inline void set_bytes(struct builder *b, size_t at, const void *data, size_t len)
{
	if (!b->failed)
		memcpy(b->buf.data + at, data, len);
}

/* Replaces SECTION by the section that B has built, and leaves B empty. Returns 0 or -ENOMEM. */
static inline int finish_section(struct builder *b, struct fr_buf *section)
{
	int r = b->failed ? -ENOMEM : 0;

	fr_buf_deinit(r < 0 ? &b->buf : section);
	if (r == 0)
		*section = b->buf;
	*b = (struct builder){0};
	return r;
}

/* A set of byte strings, in the order in which they were added. Each string is in the set only once. If all
   members are zeros, the set is empty. */
struct byte_set {
	struct fr_buf *items;
	uint32_t n;
};

/* Adds a copy of the bytes, unless S has them. Returns 0 or -ENOMEM. */
int byte_set_add(struct byte_set *s, const void *data, size_t len);
void byte_set_deinit(struct byte_set *s);
