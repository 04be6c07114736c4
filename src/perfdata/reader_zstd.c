// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * COMPRESSED records hold pieces of a zstd stream. A record in the stream can begin in one piece and end in a
 * later piece. In this file, a frame is a zstd frame. perf writes one frame that never ends. flightrec writes
 * many frames of whole records: after damage, the reader goes on at the next COMPRESSED record that begins a
 * frame.
 */

#include "base/cleanup.h"
#include "perfdata/reader_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void fr_reader_drop_frame(struct fr_reader *r)
{
	uint64_t lost = r->packed.size - r->packed.pos + (r->raw_len - r->raw_start);

	if (lost > 0)
		fr_reader_note_damage(r, r->compressed_at, lost, "a compressed frame is not whole");
	if (r->zstd)
		ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
	r->packed = (ZSTD_inBuffer){0};
	r->raw_start = r->raw_len = 0;
	r->wait_for_frame = true;
	r->in_frame = false;
}

static void drop_damaged_frame(struct fr_reader *r, const char *text)
{
	fr_reader_note_damage(r, r->compressed_at, 0, text);
	fr_reader_drop_frame(r);
}

void fr_reader_start_compressed(struct fr_reader *r, const uint8_t *payload, size_t len, uint64_t at)
{
	r->compressed_at = at;
	if (r->wait_for_frame && !fr_reader_begins_frame(payload, len)) {
		fr_reader_note_damage(r, at, len, "the start of the frame of a compressed record is missing");
		return;
	}
	r->wait_for_frame = false;
	r->continues = r->in_frame;
	r->packed = (ZSTD_inBuffer){.src = payload, .size = len};
}

/* Decompresses a part of the input, and appends it to the raw bytes. Returns 1 if there may be more raw
   bytes, 0 if the input is used up, or -ENOMEM. */
static int decompress(struct fr_reader *r)
{
	const uint8_t *begin = r->packed.src;
	size_t len = r->packed.size, x;
	ZSTD_outBuffer out;
	bool restarts;

	if (!r->raw) {
		r->raw = malloc(FR_READER_RAW);
		r->zstd = ZSTD_createDStream();
		if (!r->raw || !r->zstd)
			return -ENOMEM;
	}
	if (r->raw_start > 0) {
		memmove(r->raw, r->raw + r->raw_start, r->raw_len - r->raw_start);
		r->raw_len -= r->raw_start;
		r->raw_start = 0;
	}
	out = (ZSTD_outBuffer){.dst = r->raw, .size = FR_READER_RAW, .pos = r->raw_len};
	x = ZSTD_decompressStream(r->zstd, &out, &r->packed);
	if (!ZSTD_isError(x)) {
		bool has_more = out.pos > r->raw_len || r->packed.pos < r->packed.size;

		r->raw_len = out.pos;
		r->in_frame = x != 0;
		return has_more;
	}
	/* If a frame begins before the previous frame has ended, a COMPRESSED record between the two frames
	   is missing. */
	restarts = r->continues && fr_reader_begins_frame(begin, len);
	if (restarts)
		r->packed.pos = len; /* the bytes of the new frame are not lost */
	drop_damaged_frame(r, "a compressed frame cannot be decompressed");
	if (restarts)
		fr_reader_start_compressed(r, begin, len, r->compressed_at);
	return 1;
}

/* If many FINISHED_ROUND records follow each other, skips all but two. After two of them a reader can flush
   all records, so a third FINISHED_ROUND adds nothing. Equal records compress to almost nothing. So a small
   file can have millions of equal records, and each record costs the caller time. */
static void skip_rounds(struct fr_reader *r)
{
	const size_t size = sizeof(struct perf_event_header), step = 4096;
	const uint8_t *p = r->raw + r->raw_start;
	size_t left = r->raw_len - r->raw_start, skipped = 0;

	while (left - skipped >= step + 2 * size && memcmp(p + skipped, p + skipped + size, step + size) == 0)
		skipped += step;
	while (left - skipped >= 3 * size && memcmp(p + skipped, p + skipped + size, 2 * size) == 0)
		skipped += size;
	r->raw_start += skipped;
}

/* Takes the first record of the raw bytes. Returns 1, and *RET is the record; 2 if the record was skipped, so
   the caller tries again; 0 if the record is not complete. */
static int read_raw(struct fr_reader *r, const uint8_t **ret)
{
	size_t left = r->raw_len - r->raw_start;
	struct perf_event_header h;
	const uint8_t *p;

	if (left < sizeof(h))
		return 0;
	p = r->raw + r->raw_start;
	memcpy(&h, p, sizeof(h));
	if (h.size > left)
		return 0;
	if (!fr_reader_is_plausible(r, p, left) || h.type == FR_RECORD_COMPRESSED ||
		h.type == FR_RECORD_COMPRESSED2 || h.type == FR_RECORD_AUXTRACE) {
		drop_damaged_frame(r, "a record inside a compressed frame is damaged");
		return 2;
	}
	if (h.type == FR_RECORD_FINISHED_ROUND && h.size == sizeof(h))
		skip_rounds(r);
	r->raw_start += h.size;
	if (fr_reader_has_unknown_id(r, p)) {
		fr_reader_note_damage(
			r, r->compressed_at, h.size, "a record belongs to no event of the file");
		return 2;
	}
	*ret = p;
	return 1;
}

int fr_reader_next_compressed(struct fr_reader *r, const uint8_t **ret)
{
	for (;;) {
		int x = read_raw(r, ret);

		if (x == 0 && r->packed.src) {
			x = decompress(r);
			if (x == 0)
				r->packed = (ZSTD_inBuffer){0};
			x = x == 1 ? 2 : x;
		}
		if (x != 2)
			return x;
	}
}

void fr_reader_end_compressed(struct fr_reader *r)
{
	size_t left = r->raw_len - r->raw_start;

	if (left > 0)
		fr_reader_note_damage(
			r, r->compressed_at, left, "the last compressed record ends inside a record");
	r->raw_start = r->raw_len = 0;
}
