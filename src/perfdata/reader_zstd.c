// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * COMPRESSED records hold pieces of one zstd stream; a record inside may begin in one and end in a later one.
 * perf writes a single frame that never ends, we write a frame of its own for each chunk: so after damage
 * there is a place to go on, the next COMPRESSED record that begins with the magic of a frame.
 */

#include "base/cleanup.h"
#include "perfdata/reader_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fr_reader_drop_frame(struct fr_reader *r)
{
	uint64_t lost = r->packed.size - r->packed.pos + (r->opened_len - r->opened_start);

	if (lost > 0)
		fr_reader_damaged(r, r->packed_at, lost, "a compressed frame is not whole");
	if (r->zstd)
		ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
	r->packed = (ZSTD_inBuffer){0};
	r->opened_start = r->opened_len = 0;
	r->wait_for_frame = true;
	r->in_frame = false;
}

static void drop_frame(struct fr_reader *r, const char *what)
{
	fr_reader_damaged(r, r->packed_at, 0, what);
	fr_reader_drop_frame(r);
}

void fr_reader_packed(struct fr_reader *r, const uint8_t *payload, size_t len, uint64_t at)
{
	r->packed_at = at;
	if (r->wait_for_frame && !fr_reader_begins_frame(payload, len)) {
		fr_reader_damaged(r, at, len, "a compressed record without the begin of its frame");
		return;
	}
	r->wait_for_frame = false;
	r->continues = r->in_frame;
	r->packed = (ZSTD_inBuffer){.src = payload, .size = len};
}

/* More output, behind what is there. 1: some came, 0: the input is used up, negative errno. */
static int decompress(struct fr_reader *r)
{
	ZSTD_outBuffer out;
	const uint8_t *begin = r->packed.src;
	size_t x;

	if (!r->opened) {
		r->opened = malloc(FR_READER_OPENED);
		r->zstd = ZSTD_createDStream();
		if (!r->opened || !r->zstd)
			return -ENOMEM;
	}
	if (r->opened_start > 0) {
		memmove(r->opened, r->opened + r->opened_start, r->opened_len - r->opened_start);
		r->opened_len -= r->opened_start;
		r->opened_start = 0;
	}
	out = (ZSTD_outBuffer){.dst = r->opened, .size = FR_READER_OPENED, .pos = r->opened_len};
	x = ZSTD_decompressStream(r->zstd, &out, &r->packed);
	if (!ZSTD_isError(x)) {
		bool more = out.pos > r->opened_len;

		r->opened_len = out.pos;
		r->in_frame = x != 0;
		return more || r->packed.pos < r->packed.size;
	}
	/* A frame that began where the old one had not ended: a record between them is missing. */
	size_t whole = r->packed.size;
	bool restart = r->continues && fr_reader_begins_frame(begin, whole);
	if (restart)
		r->packed.pos = whole;
	drop_frame(r, "a compressed frame cannot be opened");
	if (restart)
		fr_reader_packed(r, begin, whole, r->packed_at);
	return 1;
}

/* A reader holds back what it had seen at the second to last round, so a third in a row without a record
   between tells nothing new. Eight equal bytes compress to almost none, and each one handed out costs. */
static void skip_rounds(struct fr_reader *r)
{
	const size_t size = sizeof(struct perf_event_header), step = 4096;
	const uint8_t *p = r->opened + r->opened_start;
	size_t left = r->opened_len - r->opened_start, skipped = 0;

	while (left - skipped >= step + 2 * size && memcmp(p + skipped, p + skipped + size, step + size) == 0)
		skipped += step;
	while (left - skipped >= 3 * size && memcmp(p + skipped, p + skipped + size, 2 * size) == 0)
		skipped += size;
	r->opened_start += skipped;
}

/* The record at the front of what was decompressed. 1: RET; 2: it was damaged, look again; 0: not all there.
 */
static int take_opened(struct fr_reader *r, const uint8_t **ret)
{
	size_t left = r->opened_len - r->opened_start;
	struct perf_event_header h;
	const uint8_t *p;

	if (left < sizeof(h))
		return 0;
	p = r->opened + r->opened_start;
	memcpy(&h, p, sizeof(h));
	if (h.size > left)
		return 0;
	if (!fr_reader_believable(r, p, left) || h.type == FR_RECORD_COMPRESSED ||
		h.type == FR_RECORD_COMPRESSED2 || h.type == FR_RECORD_AUXTRACE) {
		drop_frame(r, "a record inside a compressed frame is damaged");
		return 2;
	}
	if (h.type == FR_RECORD_FINISHED_ROUND && h.size == sizeof(h))
		skip_rounds(r);
	r->opened_start += h.size;
	if (fr_reader_is_stray(r, p)) {
		fr_reader_damaged(r, r->packed_at, h.size, "a record is of no event of the file");
		return 2;
	}
	*ret = p;
	return 1;
}

int fr_reader_unpack(struct fr_reader *r, const uint8_t **ret)
{
	for (;;) {
		int x = take_opened(r, ret);

		if (x == 1)
			return 1;
		if (x == 2)
			continue;
		if (!r->packed.src)
			return 0;
		x = decompress(r);
		if (x < 0)
			return x;
		if (x == 0) {
			r->packed = (ZSTD_inBuffer){0};
			return 0;
		}
	}
}

void fr_reader_packed_end(struct fr_reader *r)
{
	size_t left = r->opened_len - r->opened_start;

	if (left > 0)
		fr_reader_damaged(r, r->packed_at, left, "the last compressed record ends inside a record");
	r->opened_start = r->opened_len = 0;
}
