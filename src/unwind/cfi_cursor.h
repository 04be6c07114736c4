/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the bytes of call frame information, which any user can have written. A read behind the end returns
   0 and sets BAD, so a caller needs to check BAD only once, after its last read. Only files of unwind/
   include this header. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cfi_cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline size_t cfi_left(const struct cfi_cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* Copies LEN bytes, at most 8, as a number in the byte order of this machine. */
static inline uint64_t cfi_read(struct cfi_cursor *c, size_t len)
{
	uint64_t v = 0;

	if (len > cfi_left(c)) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&v, c->at, len);
	c->at += len;
	return v;
}

static inline uint8_t cfi_read_u8(struct cfi_cursor *c)
{
	return (uint8_t)cfi_read(c, 1);
}

/* Reads a number of LEN bytes that has a sign. */
static inline int64_t cfi_read_signed(struct cfi_cursor *c, size_t len)
{
	unsigned shift = (unsigned)(64 - 8 * len);

	return (int64_t)(cfi_read(c, len) << shift) >> shift;
}

/* Reads a LEB128 number. RET_BITS gets how many bits the number has. More than 64 bits are bad. */
static inline uint64_t cfi_read_leb128(struct cfi_cursor *c, unsigned *ret_bits, bool *ret_negative)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t byte = 0x80;

	for (; byte & 0x80 && shift < 64; shift += 7) {
		byte = cfi_read_u8(c);
		v |= (uint64_t)(byte & 0x7f) << shift;
	}
	c->bad = c->bad || byte & 0x80;
	*ret_bits = shift;
	*ret_negative = byte & 0x40;
	return v;
}

static inline uint64_t cfi_read_uleb128(struct cfi_cursor *c)
{
	unsigned bits;
	bool negative;

	return cfi_read_leb128(c, &bits, &negative);
}

static inline int64_t cfi_read_sleb128(struct cfi_cursor *c)
{
	unsigned bits;
	bool negative;
	uint64_t v = cfi_read_leb128(c, &bits, &negative);

	if (negative && bits < 64)
		v |= ~0ULL << bits;
	return (int64_t)v;
}

/* Takes the next LEN bytes out of C, as a cursor of their own. */
static inline struct cfi_cursor cfi_take(struct cfi_cursor *c, uint64_t len)
{
	struct cfi_cursor taken = {c->at, c->at, false};

	if (len > cfi_left(c)) {
		c->bad = taken.bad = true;
		c->at = c->end;
		return taken;
	}
	c->at += len;
	taken.end = c->at;
	return taken;
}
