/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A search of the image by the corruption rules of layout.h. The index is made once: offsets of the frames
 * that are whole, sorted by sequence. Headers are copied out before they are believed.
 */
#include "history/recover.h"
#include "history/arena.h"
#include "history/crc32c.h"
#include "history/layout.h"
#include "history/unpack.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct found {
	uint64_t seq, offset;
};

struct fr_recovery {
	const uint8_t *image;
	size_t len;
	struct fr_image_header header; /* a copy; valid where stats.header_ok */
	struct found *found;
	size_t n, cap, at;
	/* What may yet be spent on payload crcs: forged headers must not make the search quadratic. */
	uint64_t crc_budget;
	struct fr_recovery_stats stats;
};

static bool area_fits(uint64_t offset, uint64_t bytes, uint64_t from, uint64_t to)
{
	return offset >= from && offset <= to && bytes <= to - offset && offset % 8 == 0;
}

/* Rule 1. A truncated image may have lost any part of its log. */
static bool header_holds(const struct fr_image_header *i)
{
	uint32_t crc = fr_crc32c(0, &i->image_bytes,
		offsetof(struct fr_image_header, open_seq) - offsetof(struct fr_image_header, image_bytes));

	return i->magic == FR_IMAGE_MAGIC && i->version == FR_IMAGE_VERSION && i->constant_crc == crc &&
	       area_fits(i->sideband_offset, i->sideband_bytes, FR_IMAGE_HEADER_BYTES, i->image_bytes) &&
	       area_fits(i->samples_offset, i->samples_bytes, i->sideband_offset + i->sideband_bytes,
		       i->image_bytes) &&
	       area_fits(i->log_offset, i->log_bytes, i->samples_offset + i->samples_bytes, i->image_bytes) &&
	       i->log_offset % FR_FRAME_ALIGN == 0;
}

/* Rule 2, all but the payload's crc. LEFT: bytes from the header to the log's end. */
static bool frame_header_holds(const struct fr_frame_header *h, uint64_t left)
{
	uint64_t payload = (uint64_t)h->sideband_len + h->samples_len;
	uint32_t crc = fr_crc32c(0, (const uint8_t *)h + FR_CRC_FROM, sizeof(*h) - FR_CRC_FROM);

	return h->entry.header_crc == crc && h->entry.bytes <= left && payload <= UINT32_MAX / 2 &&
	       h->entry.bytes == fr_arena_need(payload);
}

static int remember(struct fr_recovery *r, uint64_t seq, uint64_t offset)
{
	if (r->n == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 256;
		struct found *grown = reallocarray(r->found, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->found = grown;
		r->cap = cap;
	}
	r->found[r->n++] = (struct found){seq, offset};
	return 0;
}

/* 0: no frame at OFFSET; else its size. -ENOMEM. */
static ssize_t try_frame(struct fr_recovery *r, uint64_t offset, uint64_t end)
{
	struct fr_frame_header h;
	uint32_t payload;
	int q;

	memcpy(&h, r->image + offset, sizeof(h));
	if (h.entry.magic != FR_FRAME_MAGIC)
		return 0;
	payload = h.sideband_len + h.samples_len;
	if (!frame_header_holds(&h, end - offset) || payload > r->crc_budget) {
		r->stats.bad_frames++;
		return 0;
	}
	r->crc_budget -= payload;
	if (fr_crc32c(0, r->image + offset + sizeof(h), payload) != h.entry.payload_crc) {
		r->stats.bad_frames++;
		return 0;
	}
	q = remember(r, h.entry.seq, offset);
	return q < 0 ? q : (ssize_t)h.entry.bytes;
}

static int search(struct fr_recovery *r, uint64_t from, uint64_t end)
{
	uint64_t offset = from;

	while (offset < end && end - offset >= sizeof(struct fr_frame_header)) {
		ssize_t bytes = try_frame(r, offset, end);

		if (bytes < 0)
			return (int)bytes;
		offset += bytes ? (uint64_t)bytes : FR_FRAME_ALIGN;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Rule 4. */
static void put_in_order(struct fr_recovery *r)
{
	size_t kept = 0;

	if (r->n)
		qsort(r->found, r->n, sizeof(*r->found), compare);
	for (size_t i = 0; i < r->n; i++) {
		if (kept && r->found[i].seq == r->found[kept - 1].seq)
			continue;
		r->found[kept++] = r->found[i];
	}
	r->n = kept;
	r->stats.frames = kept;
	if (kept)
		r->stats.gaps = r->found[kept - 1].seq - r->found[0].seq - (kept - 1);
}

int fr_recovery_new(const void *image, size_t len, struct fr_recovery **ret)
{
	_cleanup_recovery_ struct fr_recovery *r = calloc(1, sizeof(*r));
	uint64_t from = 0, end = len;
	int q;

	if (!r)
		return -ENOMEM;
	r->image = image;
	r->len = len;
	r->crc_budget = 2 * (uint64_t)len;
	if (len >= sizeof(r->header)) {
		memcpy(&r->header, image, sizeof(r->header));
		r->stats.header_ok = header_holds(&r->header);
	}
	if (r->stats.header_ok) {
		from = r->header.log_offset;
		end = FR_MIN(end, from + r->header.log_bytes);
	}
	q = search(r, from, end);
	if (q < 0)
		return q;
	put_in_order(r);
	*ret = TAKE_PTR(r);
	return 0;
}

struct fr_recovery *fr_recovery_free(struct fr_recovery *r)
{
	if (!r)
		return NULL;
	free(r->found);
	free(r);
	return NULL;
}

int fr_recovery_next(struct fr_recovery *r, struct fr_frame *ret)
{
	if (r->at == r->n)
		return 0;
	fr_frame_view((const struct fr_frame_header *)(r->image + r->found[r->at++].offset), ret);
	return 1;
}

/* What lies below the mark and in the image, up to its last whole record. */
static size_t whole_records(const struct fr_recovery *r, uint64_t offset, uint64_t bytes, uint64_t fill)
{
	struct fr_section_iter it;

	if (offset >= r->len)
		return 0;
	fill = FR_MIN(fill, FR_MIN(bytes, r->len - offset));
	it = fr_section_iter(r->image + offset, fill);
	while (fr_section_next(&it))
		;
	return (size_t)(it.at - (r->image + offset));
}

void fr_recovery_open_chunk(const struct fr_recovery *r, struct fr_recovered_open *ret)
{
	const struct fr_image_header *i = &r->header;

	*ret = (struct fr_recovered_open){0};
	if (!r->stats.header_ok || (r->n && r->found[r->n - 1].seq >= i->open_seq))
		return;
	ret->sideband_len = whole_records(r, i->sideband_offset, i->sideband_bytes, i->sideband_fill);
	ret->sideband = ret->sideband_len ? r->image + i->sideband_offset : NULL;
	ret->samples_len = whole_records(r, i->samples_offset, i->samples_bytes, i->samples_fill);
	ret->samples = ret->samples_len ? r->image + i->samples_offset : NULL;
}

void fr_recovery_stats(const struct fr_recovery *r, struct fr_recovery_stats *ret)
{
	*ret = r->stats;
}
