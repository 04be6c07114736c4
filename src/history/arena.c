// SPDX-License-Identifier: GPL-2.0-or-later
/* The circular log of frames: room, eviction, pads, holes. */
#include "history/arena.h"
#include "base/crc32c.h"
#include "base/cleanup.h"

#include <string.h>

#define PAD_MAX (1ULL << 30) /* the field `bytes` of a pad has 32 bits */

static struct fr_entry *entry_at(const struct fr_arena *a, uint64_t position)
{
	return (struct fr_entry *)(a->log + position % a->bytes);
}

static void seal_entry(struct fr_entry *e, uint32_t magic, size_t header_bytes)
{
	e->header_crc = fr_crc32c(0, (const uint8_t *)e + FR_CRC_FROM, header_bytes - FR_CRC_FROM);
	atomic_store_explicit(&e->magic, magic, memory_order_release);
}

void fr_frame_view(const struct fr_frame_header *header, struct fr_frame *ret)
{
	const uint8_t *payload = (const uint8_t *)(header + 1);

	*ret = (struct fr_frame){
		.seq = header->entry.seq,
		.low_watermark_ns = header->low_watermark_ns,
		.first_ns = header->first_ns,
		.last_ns = header->last_ns,
		.sideband_first_ns = header->sideband_first_ns,
		.sideband_last_ns = header->sideband_last_ns,
		.n_samples = header->n_samples,
		.n_sideband = header->n_sideband,
		.samples_raw = header->samples_raw,
		.sideband_raw = header->sideband_raw,
		.sideband = payload,
		.sideband_len = header->sideband_len,
		.samples = payload + header->sideband_len,
		.samples_len = header->samples_len,
		.samples_encoding = header->entry.encoding,
		.samples_dump_len = header->entry.dump_len,
	};
}

bool fr_arena_next(const struct fr_arena *a, uint64_t *position, uint64_t end, struct fr_frame *ret)
{
	while (*position < end) {
		const struct fr_entry *e = entry_at(a, *position);

		*position += e->bytes;
		if (atomic_load_explicit(&e->magic, memory_order_relaxed) == FR_PAD_MAGIC)
			continue;
		fr_frame_view((const struct fr_frame_header *)e, ret);
		return true;
	}
	return false;
}

/* Adds F to the content of the log (SIGN 1), or removes it from the content (SIGN -1). */
static void count(struct fr_arena *a, const struct fr_frame *f, int sign)
{
	a->frames += sign;
	a->samples += (int64_t)f->n_samples * sign;
	a->sideband += (int64_t)f->n_sideband * sign;
	a->raw_bytes += ((int64_t)f->samples_raw + f->sideband_raw) * sign;
}

/* Evicts the oldest frame. Returns false if this frame is pinned, or if there is no frame. Neither the tail
   nor pinned_from is ever inside a frame, so each frame is pinned as a whole or not at all. */
static bool evict_oldest(struct fr_arena *a)
{
	uint64_t behind = a->tail;
	struct fr_frame frame;

	if (a->tail >= a->pinned_from || !fr_arena_next(a, &behind, a->head, &frame))
		return false;
	if (a->evicted)
		a->evicted(a->ctx, &frame);
	count(a, &frame, -1);
	a->frames_evicted++;
	a->samples_evicted += frame.n_samples;
	a->tail = behind;
	return true;
}

/* Returns the first hole that begins at OFFSET or later, or NULL. */
static struct fr_arena_hole *find_hole(struct fr_arena *a, uint64_t offset)
{
	struct fr_arena_hole *first = NULL;

	for (unsigned i = 0; i < a->n_holes; i++)
		if (a->holes[i].offset >= offset && (!first || a->holes[i].offset < first->offset))
			first = &a->holes[i];
	return first;
}

/* Returns how many bytes the head has to skip to come to a place with NEED bytes before the next hole and
   before the end of the log. If there is no such place, returns more than 2 * A->bytes. Sets *RET_HOLES to
   the number of skipped bytes that are in holes. */
static uint64_t bytes_to_skip(struct fr_arena *a, uint32_t need, uint64_t *ret_holes)
{
	uint64_t offset = a->head % a->bytes, skipped = 0;

	*ret_holes = 0;
	while (skipped <= 2 * a->bytes) {
		struct fr_arena_hole *hole = find_hole(a, offset);
		uint64_t end = hole ? hole->offset : a->bytes;

		if (end - offset >= need)
			return skipped;
		skipped += end - offset;
		offset = end;
		if (hole) {
			skipped += hole->bytes;
			*ret_holes += hole->bytes;
			offset += hole->bytes;
		}
		offset %= a->bytes;
	}
	return skipped;
}

/* Returns how many bytes of the log it takes to put NEED bytes: NEED, the bytes that the head has to skip,
   and the bytes of other holes between head and tail. */
static uint64_t need_with_skips(struct fr_arena *a, uint32_t need)
{
	uint64_t holes, behind = 0, skipped = bytes_to_skip(a, need, &holes);

	/* The ring has evicted the frames in a hole between head and tail, but the bytes of the hole are not
	   free. */
	for (unsigned i = 0; i < a->n_holes; i++)
		if (a->tail > a->holes[i].position)
			behind += FR_MIN(a->tail - a->holes[i].position, a->holes[i].bytes);
	return skipped + need + (behind > holes ? behind - holes : 0);
}

/* Puts a pad of BYTES, at least FR_FRAME_ALIGN, at the head. If WIPE is true, also clears all bytes of the
   pad, so that recovery after a crash finds no old frames there. (There would be a gap between the old and
   the newer frames.) WIPE is false for a hole, because a retained snapshot still reads the bytes of the
   hole. */
static void put_pad(struct fr_arena *a, uint32_t bytes, bool wipe)
{
	struct fr_entry *e = entry_at(a, a->head);

	fr_entry_wipe(e);
	memset((uint8_t *)e + sizeof(e->magic), 0, (wipe ? bytes : sizeof(*e)) - sizeof(e->magic));
	e->bytes = bytes;
	seal_entry(e, FR_PAD_MAGIC, sizeof(*e));
	a->head += bytes;
}

/* Puts pads on the next SKIPPED bytes (the result of bytes_to_skip()), and moves the head to their end. */
static void skip(struct fr_arena *a, uint64_t skipped)
{
	while (skipped > 0) {
		uint64_t offset = a->head % a->bytes;
		struct fr_arena_hole *hole = find_hole(a, offset);
		uint64_t bytes = (hole ? hole->offset : a->bytes) - offset;

		if (hole && bytes == 0) {
			hole->position = a->head;
			bytes = hole->bytes;
			put_pad(a, (uint32_t)bytes, false);
		} else {
			put_pad(a, (uint32_t)bytes, true);
		}
		skipped -= bytes;
	}
}

bool fr_arena_make_room(struct fr_arena *a, uint32_t need, uint64_t leave)
{
	uint64_t holes;

	do {
		if (fr_arena_used(a) + need_with_skips(a, need) + a->reserve <= a->bytes)
			return true;
	} while (evict_oldest(a));

	if (a->frames == 0) {
		/* An empty log may begin anywhere, so the skipped bytes need not stay in use. */
		skip(a, bytes_to_skip(a, need, &holes));
		a->tail = a->head;
	}
	return fr_arena_used(a) + need_with_skips(a, need) + leave <= a->bytes;
}

bool fr_arena_evict_to(struct fr_arena *a, uint64_t position)
{
	while (a->tail < position)
		if (!evict_oldest(a))
			return false;
	return true;
}

void fr_arena_forget(struct fr_arena *a, const struct fr_frame *frames, size_t n, uint64_t position)
{
	for (size_t i = 0; i < n; i++)
		count(a, &frames[i], -1);
	a->tail = position;
}

static void add_hole(struct fr_arena *a, uint64_t position, uint64_t bytes)
{
	if (bytes)
		a->holes[a->n_holes++] = (struct fr_arena_hole){position % a->bytes, bytes, position};
}

void fr_arena_protect(struct fr_arena *a, uint64_t from, uint64_t to)
{
	uint64_t first = FR_MIN(to - from, a->bytes - from % a->bytes);

	a->n_holes = 0;
	add_hole(a, from, first);
	add_hole(a, from + first, to - from - first);
}

void fr_arena_unprotect(struct fr_arena *a)
{
	a->n_holes = 0;
}

static void write_frame(struct fr_frame_header *h, const struct fr_frame *f, uint32_t bytes)
{
	uint8_t *payload = (uint8_t *)(h + 1);
	uint32_t len = f->sideband_len + f->samples_len;

	fr_entry_wipe(&h->entry);
	if (f->sideband_len)
		memcpy(payload, f->sideband, f->sideband_len);
	if (f->samples_len)
		memcpy(payload + f->sideband_len, f->samples, f->samples_len);
	memset(payload + len, 0, bytes - sizeof(*h) - len);
	h->entry.bytes = bytes;
	h->entry.payload_crc = fr_crc32c(0, payload, len);
	h->entry.seq = f->seq;
	h->entry.encoding = f->samples_encoding;
	h->entry.dump_len = f->samples_dump_len;
	h->first_ns = f->first_ns;
	h->last_ns = f->last_ns;
	h->sideband_first_ns = f->sideband_first_ns;
	h->sideband_last_ns = f->sideband_last_ns;
	h->n_samples = f->n_samples;
	h->n_sideband = f->n_sideband;
	h->samples_raw = f->samples_raw;
	h->sideband_raw = f->sideband_raw;
	h->samples_len = f->samples_len;
	h->sideband_len = f->sideband_len;
	h->low_watermark_ns = f->low_watermark_ns;
	seal_entry(&h->entry, FR_FRAME_MAGIC, sizeof(*h));
}

const void *fr_arena_put(struct fr_arena *a, const struct fr_frame *f)
{
	uint32_t need = fr_frame_need(f);
	struct fr_entry *e;
	uint64_t holes;

	skip(a, bytes_to_skip(a, need, &holes));
	e = entry_at(a, a->head);
	write_frame((struct fr_frame_header *)e, f, need);
	a->head += need;
	count(a, f, 1);
	return e;
}

void fr_arena_adopt(struct fr_arena *a, uint64_t offset)
{
	const struct fr_frame_header *h = (const struct fr_frame_header *)(a->log + offset);
	struct fr_frame frame;

	if (a->frames == 0)
		a->tail = a->head = offset;
	while (a->head % a->bytes != offset) {
		uint64_t from = a->head % a->bytes;

		put_pad(a, (uint32_t)FR_MIN((offset > from ? offset : a->bytes) - from, PAD_MAX), true);
	}
	fr_frame_view(h, &frame);
	a->head += h->entry.bytes;
	count(a, &frame, 1);
}

uint64_t fr_arena_oldest_sample(struct fr_arena *a)
{
	uint64_t position = a->sampled < a->tail ? a->tail : a->sampled;
	struct fr_frame frame;

	/* a->sampled skips the frames without samples that earlier calls have found. */
	for (a->sampled = position; fr_arena_next(a, &position, a->head, &frame); a->sampled = position)
		if (frame.n_samples)
			return frame.first_ns;
	return 0;
}
