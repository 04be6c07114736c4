/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes messages in the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding). A
   message inside of another one is built in a buffer of its own, because its length comes first. Plain data;
   not thread-safe. */

#include "base/buf.h"

#include <stdbool.h>
#include <string.h>

struct fr_protobuf {
	struct fr_buf buf;
	bool failed; /* there was no memory; the caller checks once, at the end */
};

static inline void fr_pb_varint(struct fr_protobuf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	do {
		bytes[n] = (uint8_t)(v & 0x7f) | (v > 0x7f ? 0x80 : 0);
		n++;
		v >>= 7;
	} while (v);
	b->failed |= fr_buf_append(&b->buf, bytes, n) < 0;
}

/* A number that is not negative, or the bits of a negative one as int64. A field that is 0 is the default,
   and need not be written. */
static inline void fr_pb_number(struct fr_protobuf *b, uint32_t field, uint64_t v)
{
	fr_pb_varint(b, (uint64_t)field << 3);
	fr_pb_varint(b, v);
}

static inline void fr_pb_bytes(struct fr_protobuf *b, uint32_t field, const void *data, size_t len)
{
	fr_pb_varint(b, (uint64_t)field << 3 | 2);
	fr_pb_varint(b, len);
	b->failed |= fr_buf_append(&b->buf, data, len) < 0;
}

static inline void fr_pb_text(struct fr_protobuf *b, uint32_t field, const char *text)
{
	fr_pb_bytes(b, field, text, strlen(text));
}

/* Appends MESSAGE as a field, and empties it for the next one. */
static inline void fr_pb_message(struct fr_protobuf *b, uint32_t field, struct fr_protobuf *message)
{
	fr_pb_bytes(b, field, message->buf.data, message->buf.len);
	b->failed |= message->failed;
	message->buf.len = 0;
}

static inline void fr_pb_deinit(struct fr_protobuf *b)
{
	fr_buf_deinit(&b->buf);
	b->failed = false;
}
#define _cleanup_pb_ _cleanup_(fr_pb_deinit)
