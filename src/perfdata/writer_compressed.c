// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Writes one zstd frame as COMPRESSED records. Each record has one piece of the frame. docs/design/60 has the
 * rules of perf for such a piece.
 *
 *   [header │ skippable frame │ start of the frame] [header │ more of the frame] …
 */

#include "perfdata/writer.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_frameHeaderSize() */
#include <zstd.h>

#define PIECE (65528u - sizeof(struct perf_event_header)) /* a multiple of 8 */
#define RAW_MAX (64u << 20)
#define BLOCK_RLE 1u
#define BLOCK_RESERVED 3u

/* Makes the skippable frame that pads LEN bytes to a multiple of 8. The skippable frame is written before
   these bytes. Returns its size. */
static size_t make_padding(size_t len, uint8_t ret[static 16])
{
	uint32_t fill = (uint32_t)(-len & 7);
	uint32_t head[2] = {htole32(ZSTD_MAGIC_SKIPPABLE_START), htole32(fill)};

	if (fill == 0)
		return 0;
	memset(ret, 0, 16);
	memcpy(ret, head, sizeof(head));
	return sizeof(head) + fill;
}

/* Returns whether each piece of the frame contains the end of a block. The frame starts PAD bytes after the
   start of the first piece. */
static bool can_be_split(const uint8_t *p, size_t len, size_t pad)
{
	static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
	size_t at = len < ZSTD_FRAMEHEADERSIZE_MIN(ZSTD_f_zstd1) ? SIZE_MAX : ZSTD_frameHeaderSize(p, len);
	size_t piece = 0;
	bool last = false;

	if (at > len || memcmp(p, magic, sizeof(magic)) != 0)
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
	/* A piece that has only the checksum gives no output. */
	return (pad + len - 1) / PIECE < piece;
}

static int write_decompressed(struct fr_file_writer *w, const void *frame, size_t len)
{
	unsigned long long raw = ZSTD_getFrameContentSize(frame, len);
	_cleanup_free_ void *p = NULL;
	size_t n;

	if (raw > RAW_MAX) /* also ZSTD_CONTENTSIZE_UNKNOWN and _ERROR */
		return -EBADMSG;
	p = malloc(raw ? raw : 1);
	if (!p)
		return -ENOMEM;
	n = ZSTD_decompress(p, raw, frame, len);
	if (ZSTD_isError(n) || n != raw)
		return -EBADMSG;
	return fr_file_write_records(w, p, n);
}

int fr_file_write_frame(struct fr_file_writer *w, const void *frame, size_t len)
{
	struct {
		struct perf_event_header header;
		uint8_t pad[16];
	} begin = {.header.type = FR_RECORD_COMPRESSED};
	size_t pad_len = make_padding(len, begin.pad);
	int r = 0;

	if (len == 0)
		return 0;
	if (!can_be_split(frame, len, pad_len))
		return write_decompressed(w, frame, len);
	for (size_t at = 0, n; at < len && r == 0; at += n) {
		n = FR_MIN(len - at, PIECE - pad_len);
		begin.header.size = (uint16_t)(sizeof(begin.header) + pad_len + n);
		r = fr_file_write_records(w, &begin, sizeof(begin.header) + pad_len);
		if (r == 0)
			r = fr_file_write_records(w, (const uint8_t *)frame + at, n);
		pad_len = 0;
	}
	return r;
}
