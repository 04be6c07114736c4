// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * COMPRESSED records: one zstd frame, cut into pieces that fit a record.
 *
 * What perf asks of a piece, from its zstd_decompress_stream() and its caller:
 *   - it must yield at least one byte, or perf gives up ("Couldn't decompress data"). zstd hands out whole
 *     blocks, so the end of a block that is not empty has to lie in every piece;
 *   - nothing may follow the end of a frame in a piece: from its second turn on, perf's loop adds the bytes
 *     that are done to its output pointer twice. Records are multiples of 8, and the frame mostly is not: a
 *     skippable frame fills it up. It stands *before* the frame, where perf's loop has put out nothing yet.
 */

#include "perfdata/writer.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zstd.h>

#define PIECE (65528u - sizeof(struct perf_event_header)) /* a multiple of 8 */
#define RAW_MAX (64u << 20)
#define SKIPPABLE_MAGIC 0x184d2a50u
#define BLOCK_RLE 1u
#define BLOCK_RESERVED 3u

/* The bytes before the frame that make the whole a multiple of 8. */
static size_t make_padding(size_t len, uint8_t ret[static 16])
{
	uint32_t fill = (uint32_t)(-len & 7);
	uint32_t head[2] = {htole32(SKIPPABLE_MAGIC), htole32(fill)};

	if (fill == 0)
		return 0;
	memset(ret, 0, 16);
	memcpy(ret, head, sizeof(head));
	return sizeof(head) + fill;
}

/* Length of a frame's header (RFC 8878, 3.1.1.1), or 0. */
static size_t frame_header_size(const uint8_t *p, size_t len)
{
	static const uint8_t dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
	uint8_t d;
	bool single;
	size_t n;

	if (len < 5 || p[0] != 0x28 || p[1] != 0xb5 || p[2] != 0x2f || p[3] != 0xfd)
		return 0;
	d = p[4];
	single = d & 0x20;
	n = 5 + !single + dictionary[d & 3] + content[d >> 6] + (single && d >> 6 == 0);
	return n <= len ? n : 0;
}

/* Whether each piece of the frame, which starts PAD bytes into the first, has the end of a block in it. */
static bool can_be_cut(const uint8_t *p, size_t len, size_t pad)
{
	size_t at = frame_header_size(p, len), piece = 0;
	bool last = false;

	if (at == 0)
		return false;
	while (!last) {
		uint32_t head, type, size, stored;

		if (len - at < 3)
			return false;
		head = (uint32_t)p[at] | (uint32_t)p[at + 1] << 8 | (uint32_t)p[at + 2] << 16;
		last = head & 1;
		type = head >> 1 & 3;
		size = head >> 3;
		stored = type == BLOCK_RLE ? 1 : size;
		if (type == BLOCK_RESERVED || len - at - 3 < stored)
			return false;
		at += 3 + stored;
		if (size > 0) {
			size_t in = (pad + at - 1) / PIECE;

			if (in > piece)
				return false;
			piece = in + 1;
		}
	}
	/* A checksum that is left for a piece of its own yields nothing. */
	return (pad + len - 1) / PIECE < piece;
}

static int write_plain(struct fr_file_writer *w, const void *zstd, size_t len)
{
	unsigned long long raw = ZSTD_getFrameContentSize(zstd, len);
	_cleanup_free_ void *p = NULL;
	size_t n;

	if (raw > RAW_MAX) /* unknown and error are the largest values */
		return -EBADMSG;
	p = malloc(raw ? raw : 1);
	if (!p)
		return -ENOMEM;
	n = ZSTD_decompress(p, raw, zstd, len);
	if (ZSTD_isError(n) || n != raw)
		return -EBADMSG;
	return fr_file_write_records(w, p, n);
}

static int write_piece(
	struct fr_file_writer *w, const uint8_t *pad, size_t pad_len, const uint8_t *data, size_t len)
{
	struct perf_event_header h = {
		.type = FR_RECORD_COMPRESSED, .size = (uint16_t)(sizeof(h) + pad_len + len)};
	int r = fr_file_write_records(w, &h, sizeof(h));

	if (r == 0)
		r = fr_file_write_records(w, pad, pad_len);
	return r < 0 ? r : fr_file_write_records(w, data, len);
}

int fr_file_write_frame(struct fr_file_writer *w, const void *zstd, size_t len)
{
	const uint8_t *p = zstd;
	uint8_t pad[16];
	size_t pad_len = make_padding(len, pad);

	if (len == 0)
		return 0;
	if (!can_be_cut(p, len, pad_len))
		return write_plain(w, zstd, len);
	while (len > 0) {
		size_t n = FR_MIN(len, PIECE - pad_len);
		int r = write_piece(w, pad, pad_len, p, n);

		if (r < 0)
			return r;
		p += n;
		len -= n;
		pad_len = 0;
	}
	return 0;
}
