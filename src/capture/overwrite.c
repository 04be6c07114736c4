// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads a ring that the kernel overwrites, and does not pause the kernel (docs/design/11).
 *
 *   head (newest) ──────────────────────────────► older ──► oldest │ not valid any more
 *   └ the copy begins here. It ends where the previous copy began, or has the size of the ring
 *
 * During the copy, the kernel can overwrite the oldest records. If so, the bytes of these records in the copy
 * are not valid.
 */
#include "capture/ring.h"
#include "base/cleanup.h"

#include <string.h>

/* The kernel moves data_head only after a record is complete. So data_head does not show up to this many
   bytes that the kernel may already have overwritten. */
#define SLACK_BYTES (64u << 10)

static uint64_t load_head(const struct fr_ring *r)
{
	return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

/* Orders the loads of the copy before the second load of data_head. With ThreadSanitizer, which supports no
   fences, this does nothing. */
static void load_fence(void)
{
#ifndef __SANITIZE_THREAD__
	atomic_thread_fence(memory_order_acquire);
#endif
}

static void copy_from(const struct fr_ring *r, uint64_t head, uint8_t *copy, uint64_t len)
{
	uint64_t at = head & (r->size - 1), before_end = FR_MIN(len, r->size - at);

	memcpy(copy, r->data + at, before_end);
	memcpy(copy + before_end, r->data, len - before_end);
}

/* The copy has LEN bytes of the ring, from HEAD on. Returns the number of bytes at the start of the copy that
   are valid, because the kernel surely did not overwrite them in the ring during the copy. */
static uint64_t count_valid(const struct fr_ring *r, uint64_t head, uint64_t len)
{
	uint64_t slack = FR_MIN((uint64_t)SLACK_BYTES, r->size / 4), written;

	load_fence();
	written = head - load_head(r);
	return written + slack >= r->size ? 0 : FR_MIN(len, r->size - written - slack);
}

/* Returns the size of the next piece: the whole records from P on that fit into one run and into LIMIT bytes.
   Returns 0 if no record fits. */
static uint64_t measure_piece(const uint8_t *p, uint64_t limit, struct fr_ring *r)
{
	uint64_t len = 0;

	while (limit - len >= sizeof(struct perf_event_header)) {
		size_t size = ((const struct perf_event_header *)(p + len))->size;

		if (size > limit - len || len + size > FR_RUN_MAX)
			break;
		if (size < sizeof(struct perf_event_header) || size & 7) {
			/* If the size is 0, the kernel has not written here yet. If the size is another
			   invalid size, the bytes are not the header of a record. */
			if (size)
				fr_cell_add_lost(r->owner, FR_LOSS_TORN, 1);
			break;
		}
		len += size;
	}
	return len;
}

/* Copies the records in the LEN bytes at P to OUT, the last record first. */
static void reverse_records(const uint8_t *p, uint64_t len, uint8_t *out)
{
	uint8_t *to = out + len;
	size_t size;

	for (uint64_t at = 0; at < len; at += size) {
		size = ((const struct perf_event_header *)(p + at))->size;
		to -= size;
		memcpy(to, p + at, size);
	}
}

size_t fr_ring_max_pieces(uint64_t ring_bytes)
{
	/* Two neighbouring pieces together have more than FR_RUN_MAX bytes; otherwise they would be one
	   piece. So each FR_RUN_MAX bytes of the ring give at most two pieces. */
	return 2 * (ring_bytes / FR_RUN_MAX) + 4;
}

size_t fr_ring_read_overwritable(struct fr_ring *r, struct fr_tally *t,
	const struct fr_overwritable_room *room, fr_run_fn sink, void *ctx)
{
	uint64_t head = load_head(r), n_new = r->tail - head, valid, done = 0, len;
	size_t n = 0, max = fr_ring_max_pieces(r->size);

	if (!n_new)
		return 0;
	n_new = FR_MIN(n_new, r->size);
	copy_from(r, head, room->copy, n_new);
	valid = count_valid(r, head, n_new);
	r->tail = head;

	for (; n < max && (len = measure_piece(room->copy + done, valid - done, r)); done += len)
		room->pieces[n++] = done;
	len = done;
	while (n--) {
		reverse_records(room->copy + room->pieces[n], len - room->pieces[n], room->reversed);
		if (fr_walk_all(room->reversed, room->reversed + (len - room->pieces[n]), t, sink, ctx) ==
			FR_WALK_TORN)
			fr_cell_add_lost(r->owner, FR_LOSS_TORN, 1);
		len = room->pieces[n];
	}
	fr_tally_flush(t);
	return done;
}
