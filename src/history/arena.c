/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "history/arena.h"
#include "history/crc32c.h"
#include "base/cleanup.h"

#include <stdatomic.h>
#include <string.h>

#define PAD_MAX (1ULL << 30) /* its length has 32 bits */

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
	};
}

bool fr_arena_step(const struct fr_arena *a, uint64_t *position, uint64_t end, struct fr_frame *ret)
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

static void count_out(struct fr_arena *a, const struct fr_frame *f)
{
	a->frames--;
	a->samples -= f->n_samples;
	a->sideband -= f->n_sideband;
	a->raw_bytes -= f->samples_raw + (uint64_t)f->sideband_raw;
}

/* False where the oldest frame is pinned, or there is none. Pins begin where a frame ends, as the tail does.
 */
static bool evict_oldest(struct fr_arena *a)
{
	uint64_t behind = a->tail;
	struct fr_frame frame;

	if (a->tail >= a->pinned_from || !fr_arena_step(a, &behind, a->head, &frame))
		return false;
	if (a->evicted)
		a->evicted(a->ctx, &frame);
	count_out(a, &frame);
	a->frames_evicted++;
	a->samples_evicted += frame.n_samples;
	a->tail = behind;
	return true;
}

/* The first hole at OFFSET or behind it, or NULL. */
static struct fr_arena_hole *hole_from(struct fr_arena *a, uint64_t offset)
{
	struct fr_arena_hole *first = NULL;

	for (unsigned i = 0; i < a->n_holes; i++)
		if (a->holes[i].offset >= offset && (!first || a->holes[i].offset < first->offset))
			first = &a->holes[i];
	return first;
}

/* Where the head would go on: how many bytes it has to pass so that NEED fit before the log's end and before
   a hole. *RET_HOLES: how many of them are holes. */
static uint64_t pass(struct fr_arena *a, uint32_t need, uint64_t *ret_holes)
{
	uint64_t offset = a->head % a->bytes, passed = 0;

	*ret_holes = 0;
	while (passed <= 2 * a->bytes) {
		struct fr_arena_hole *hole = hole_from(a, offset);
		uint64_t end = hole ? hole->offset : a->bytes;

		if (end - offset >= need)
			return passed;
		passed += end - offset;
		offset = end;
		if (hole) {
			passed += hole->bytes;
			*ret_holes += hole->bytes;
			offset += hole->bytes;
		}
		offset %= a->bytes;
	}
	return passed;
}

/* What NEED takes from the log, with what is passed. */
static uint64_t with_passed(struct fr_arena *a, uint32_t need)
{
	uint64_t holes, behind = 0, passed = pass(a, need, &holes);

	/* Holes between head and tail are no free room, though nothing of them is in use. */
	for (unsigned i = 0; i < a->n_holes; i++)
		if (a->tail > a->holes[i].position)
			behind += FR_MIN(a->tail - a->holes[i].position, a->holes[i].bytes);
	return passed + need + (behind > holes ? behind - holes : 0);
}

/* BYTES, at least one FR_FRAME_ALIGN, are in use and hold no frame. WIPE what lay there: frames of the lap
   before, older than those that this lap has overwritten, would be found after a crash with a gap behind
   them.
 */
static void put_pad(struct fr_arena *a, uint32_t bytes, bool wipe)
{
	struct fr_entry *e = entry_at(a, a->head);

	atomic_store_explicit(&e->magic, 0, memory_order_release);
	memset((uint8_t *)e + sizeof(e->magic), 0, (wipe ? bytes : sizeof(*e)) - sizeof(e->magic));
	e->bytes = bytes;
	seal_entry(e, FR_PAD_MAGIC, sizeof(*e));
	a->head += bytes;
}

/* Move the head by what pass() said. */
static void go_on(struct fr_arena *a, uint64_t passed)
{
	while (passed > 0) {
		uint64_t offset = a->head % a->bytes;
		struct fr_arena_hole *hole = hole_from(a, offset);
		uint64_t bytes = (hole ? hole->offset : a->bytes) - offset;

		if (hole && bytes == 0) {
			hole->position = a->head;
			bytes = hole->bytes;
			put_pad(a, (uint32_t)bytes, false);
		} else {
			put_pad(a, (uint32_t)bytes, true);
		}
		passed -= bytes;
	}
}

bool fr_arena_make_room(struct fr_arena *a, uint32_t need, uint64_t hold_back)
{
	uint64_t holes;

	do {
		if (fr_arena_used(a) + with_passed(a, need) + a->reserve <= a->bytes)
			return true;
	} while (evict_oldest(a));

	if (a->frames == 0) {
		/* An empty log may begin anywhere: then no pad is in the way. */
		go_on(a, pass(a, need, &holes));
		a->tail = a->head;
	}
	return fr_arena_used(a) + with_passed(a, need) + hold_back <= a->bytes;
}

bool fr_arena_evict_to(struct fr_arena *a, uint64_t position)
{
	while (a->tail < position)
		if (!evict_oldest(a))
			return false;
	return true;
}

void fr_arena_leave(struct fr_arena *a, const struct fr_frame *frames, size_t n, uint64_t position)
{
	for (size_t i = 0; i < n; i++)
		count_out(a, &frames[i]);
	a->tail = position;
}

static void add_hole(struct fr_arena *a, uint64_t position, uint64_t bytes)
{
	if (bytes)
		a->holes[a->n_holes++] = (struct fr_arena_hole){position % a->bytes, bytes, position};
}

void fr_arena_go_around(struct fr_arena *a, uint64_t from, uint64_t to)
{
	uint64_t first = FR_MIN(to - from, a->bytes - from % a->bytes);

	a->n_holes = 0;
	add_hole(a, from, first);
	add_hole(a, from + first, to - from - first);
}

void fr_arena_fill_holes(struct fr_arena *a)
{
	a->n_holes = 0;
}

static void write_frame(struct fr_frame_header *h, const struct fr_frame *f, uint32_t bytes)
{
	uint8_t *payload = (uint8_t *)(h + 1);
	uint32_t len = f->sideband_len + f->samples_len;

	atomic_store_explicit(&h->entry.magic, 0, memory_order_release);
	if (f->sideband_len)
		memcpy(payload, f->sideband, f->sideband_len);
	if (f->samples_len)
		memcpy(payload + f->sideband_len, f->samples, f->samples_len);
	memset(payload + len, 0, bytes - sizeof(*h) - len);
	h->entry.bytes = bytes;
	h->entry.payload_crc = fr_crc32c(0, payload, len);
	h->entry.seq = f->seq;
	h->entry.reserved = 0;
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

static void count_in(struct fr_arena *a, const struct fr_frame *f)
{
	a->frames++;
	a->samples += f->n_samples;
	a->sideband += f->n_sideband;
	a->raw_bytes += f->samples_raw + (uint64_t)f->sideband_raw;
}

void fr_arena_put(struct fr_arena *a, const struct fr_frame *f)
{
	uint32_t need = fr_arena_need((uint64_t)f->sideband_len + f->samples_len);
	uint64_t holes;

	go_on(a, pass(a, need, &holes));
	write_frame((struct fr_frame_header *)entry_at(a, a->head), f, need);
	a->head += need;
	count_in(a, f);
}

void fr_arena_take(struct fr_arena *a, uint64_t offset)
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
	count_in(a, &frame);
}

uint64_t fr_arena_oldest_sample(struct fr_arena *a)
{
	uint64_t position = a->sampled < a->tail ? a->tail : a->sampled;
	struct fr_frame frame;

	/* What was looked at once is not looked at again, so a run of frames without samples costs nothing.
	 */
	for (a->sampled = position; fr_arena_step(a, &position, a->head, &frame); a->sampled = position)
		if (frame.n_samples)
			return frame.first_ns;
	return 0;
}
