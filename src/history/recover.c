// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Searches an image for frames by the rules of docs/design/22, and sorts the valid frames by sequence number.
 * The image can be forged, so all lengths in a frame header are checked before they are used.
 */
#include "history/recover.h"
#include "history/arena.h"
#include "base/crc32c.h"
#include "history/layout.h"
#include "history/unpack.h"
#include "base/buf.h"
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
	struct fr_image_header header; /* a copy; valid if stats.header_ok is true */
	struct fr_buf index;	       /* array of struct found */
	struct found *found;	       /* the index, sorted */
	size_t n, at;
	uint64_t crc_budget; /* bytes that payload crcs may still read; without this limit, forged headers
				could make the search very slow */
	struct fr_recovery_stats stats;
};

static bool is_area_within(uint64_t offset, uint64_t bytes, uint64_t from, uint64_t to)
{
	return offset >= from && offset <= to && bytes <= to - offset && offset % 8 == 0;
}

/* Rule 1 of docs/design/22. The areas are allowed to go beyond the end of the image, because the image can be
   truncated. */
static bool is_valid_header(const struct fr_image_header *i)
{
	uint32_t crc = fr_crc32c(0, &i->image_bytes,
		offsetof(struct fr_image_header, open_seq) - offsetof(struct fr_image_header, image_bytes));

	return i->magic == FR_IMAGE_MAGIC && i->version == FR_IMAGE_VERSION && i->constant_crc == crc &&
	       is_area_within(i->sideband_offset, i->sideband_bytes, FR_IMAGE_HEADER_BYTES, i->image_bytes) &&
	       is_area_within(i->samples_offset, i->samples_bytes, i->sideband_offset + i->sideband_bytes,
		       i->image_bytes) &&
	       is_area_within(
		       i->log_offset, i->log_bytes, i->samples_offset + i->samples_bytes, i->image_bytes) &&
	       i->log_offset % FR_FRAME_ALIGN == 0;
}

/* Rule 2 of docs/design/22, without the crc of the payload. LEFT is the number of bytes from the header to
   the log's end. */
static bool is_valid_frame_header(const struct fr_frame_header *h, uint64_t left)
{
	uint64_t payload = (uint64_t)h->sideband_len + h->samples_len;
	uint32_t crc = fr_crc32c(0, (const uint8_t *)h + FR_CRC_FROM, sizeof(*h) - FR_CRC_FROM);

	return h->entry.header_crc == crc && h->entry.bytes <= left && payload <= UINT32_MAX / 2 &&
	       h->entry.bytes == fr_arena_need(payload);
}

/* Adds the frame at OFFSET to the index. END is the log's end. Returns the size of the frame; 0 if there is
   no valid frame at OFFSET; or -ENOMEM. */
static ssize_t try_frame(struct fr_recovery *r, uint64_t offset, uint64_t end)
{
	struct fr_frame_header h;
	uint32_t payload;
	int q;

	memcpy(&h, r->image + offset, sizeof(h));
	if (h.entry.magic != FR_FRAME_MAGIC)
		return 0;
	payload = h.sideband_len + h.samples_len;
	if (!is_valid_frame_header(&h, end - offset) || payload > r->crc_budget)
		return 0;
	r->crc_budget -= payload;
	if (fr_crc32c(0, r->image + offset + sizeof(h), payload) != h.entry.payload_crc)
		return 0;
	q = fr_buf_append(&r->index, &(struct found){h.entry.seq, offset}, sizeof(struct found));
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

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->seq != y->seq ? (x->seq > y->seq ? 1 : -1)
				: (x->offset > y->offset) - (x->offset < y->offset);
}

/* Rule 4 of docs/design/22: of two frames with the same sequence number, the frame at the lower offset
   counts. */
static void sort_index(struct fr_recovery *r)
{
	const size_t n = r->index.len / sizeof(*r->found);

	r->found = (struct found *)r->index.data;
	if (n)
		qsort(r->found, n, sizeof(*r->found), compare_found);
	for (size_t i = 0; i < n; i++)
		if (!r->n || r->found[i].seq != r->found[r->n - 1].seq)
			r->found[r->n++] = r->found[i];
	r->stats.frames = r->n;
	if (r->n)
		r->stats.gaps = r->found[r->n - 1].seq - r->found[0].seq - (r->n - 1);
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
		r->stats.header_ok = is_valid_header(&r->header);
	}
	if (r->stats.header_ok) {
		from = r->header.log_offset;
		end = FR_MIN(end, from + r->header.log_bytes);
	}
	q = search(r, from, end);
	if (q < 0)
		return q;
	sort_index(r);
	*ret = TAKE_PTR(r);
	return 0;
}

struct fr_recovery *fr_recovery_free(struct fr_recovery *r)
{
	if (!r)
		return NULL;
	fr_buf_deinit(&r->index);
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

/* Returns the number of bytes of whole records in a section of the open chunk. The image can be truncated. */
static size_t measure_records(const struct fr_recovery *r, uint64_t offset, uint64_t bytes, uint64_t fill)
{
	struct fr_record_iter it;

	if (offset >= r->len)
		return 0;
	fill = FR_MIN(fill, FR_MIN(bytes, r->len - offset));
	it = fr_record_iter(r->image + offset, fill);
	while (fr_record_next(&it))
		;
	return (size_t)(it.at - (r->image + offset));
}

void fr_recovery_open_chunk(const struct fr_recovery *r, struct fr_recovered_open *ret)
{
	const struct fr_image_header *i = &r->header;

	*ret = (struct fr_recovered_open){0};
	if (!r->stats.header_ok || (r->n && r->found[r->n - 1].seq >= i->open_seq))
		return;
	ret->sideband_len = measure_records(r, i->sideband_offset, i->sideband_bytes, i->sideband_fill);
	ret->sideband = ret->sideband_len ? r->image + i->sideband_offset : NULL;
	ret->samples_len = measure_records(r, i->samples_offset, i->samples_bytes, i->samples_fill);
	ret->samples = ret->samples_len ? r->image + i->samples_offset : NULL;
}

/* Returns whether the first FILL bytes of a section are in the image, and have the crc of the commit. */
static bool has_crc(const struct fr_recovery *r, uint64_t offset, uint64_t bytes, uint32_t fill, uint32_t crc)
{
	return fill <= bytes && offset <= r->len && fill <= r->len - offset &&
	       fr_crc32c(0, r->image + offset, fill) == crc;
}

static bool is_valid_commit(const struct fr_recovery *r, const struct fr_image_commit *c)
{
	const struct fr_image_header *i = &r->header;

	return c->generation && c->crc == fr_crc32c(0, c, offsetof(struct fr_image_commit, crc)) &&
	       has_crc(r, i->sideband_offset, i->sideband_bytes, c->sideband_fill, c->sideband_crc) &&
	       has_crc(r, i->samples_offset, i->samples_bytes, c->samples_fill, c->samples_crc);
}

bool fr_recovery_committed_chunk(
	const struct fr_recovery *r, struct fr_recovered_open *ret, struct fr_image_commit *ret_commit)
{
	struct fr_image_commit found[FR_IMAGE_COMMITS], *best = NULL;
	struct fr_recovery own = *r;

	*ret = (struct fr_recovered_open){0};
	*ret_commit = (struct fr_image_commit){0};
	if (!r->stats.header_ok || r->len < FR_IMAGE_HEADER_BYTES)
		return false;
	memcpy(found, r->image + sizeof(r->header), sizeof(found));
	for (unsigned i = 0; i < FR_IMAGE_COMMITS; i++)
		if (is_valid_commit(r, &found[i]) && (!best || found[i].generation > best->generation))
			best = &found[i];
	if (!best)
		return false;
	own.header.open_seq = best->open_seq;
	own.header.sideband_fill = best->sideband_fill;
	own.header.samples_fill = best->samples_fill;
	fr_recovery_open_chunk(&own, ret);
	*ret_commit = *best;
	return true;
}

void fr_recovery_stats(const struct fr_recovery *r, struct fr_recovery_stats *ret)
{
	*ret = r->stats;
}
