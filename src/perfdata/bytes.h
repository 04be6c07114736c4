/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside perfdata/: bytes that are read from the front, and sections that are built from parts. Both remember
 * a failure, so the caller checks once, at the end.
 */

#include "base/buf.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The bytes left to read. A read past the end sets FAILED; from then on, all reads return NULL or 0. */
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

/* A string with its NUL, or NULL. */
static inline const char *read_string(struct byte_reader *r)
{
	const uint8_t *end = r->left ? memchr(r->p, '\0', r->left) : NULL;

	return read_bytes(r, end ? (uint64_t)(end - r->p) + 1 : UINT64_MAX);
}

/* A section under construction. Zero-initialised is empty. */
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

/* Overwrites bytes that were put before, such as the number of items that followed. */
static inline void set_bytes(struct builder *b, size_t at, const void *data, size_t len)
{
	if (!b->failed)
		memcpy(b->buf.data + at, data, len);
}

/* Replaces SECTION by what B built, and leaves B empty. 0 or -ENOMEM. */
static inline int finish_section(struct builder *b, struct fr_buf *section)
{
	int r = b->failed ? -ENOMEM : 0;

	fr_buf_deinit(r < 0 ? &b->buf : section);
	if (r == 0)
		*section = b->buf;
	*b = (struct builder){0};
	return r;
}
