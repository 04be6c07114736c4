// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Looking into a ring that the kernel overwrites, without pausing it.
 *
 *   head (newest) ──────────────────────────────► older ──► oldest │ reused by the writer meanwhile + slack
 *   └ copied from here, up to what the last look had or to the ring's size
 *
 * data_head begins at 0 and goes down. After the copy it is read again: by so much the kernel has written
 * over the oldest bytes of the copy. A record that is being written is not yet in data_head; the slack is
 * room for the largest in flight, nested. What remains is walked from the newest record on, then turned round
 * in pieces of a run each.
 */
#include "capture/ring.h"
#include "base/cleanup.h"

#include <string.h>

#define SLACK_BYTES (64u << 10)

static uint64_t load_head(const struct fr_ring *r)
{
	return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

/* The copy's loads come before the second load of data_head. ThreadSanitizer knows no fences (nor the
   kernel's writes). */
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

/* How many bytes of a copy of LEN from HEAD on nobody has written to since. */
static uint64_t still_valid(const struct fr_ring *r, uint64_t head, uint64_t len)
{
	uint64_t slack = FR_MIN((uint64_t)SLACK_BYTES, r->size / 4), written;

	load_fence();
	written = head - load_head(r);
	return written + slack >= r->size ? 0 : FR_MIN(len, r->size - written - slack);
}

/* Bytes of whole records from P on within LIMIT that make up one run. 0: no more. */
static uint64_t piece(const uint8_t *p, uint64_t limit, struct fr_ring *r)
{
	uint64_t len = 0;

	while (limit - len >= sizeof(struct perf_event_header)) {
		size_t size = ((const struct perf_event_header *)(p + len))->size;

		if (size > limit - len || len + size > FR_RUN_MAX)
			break;
		if (size < sizeof(struct perf_event_header) || size & 7) {
			/* Zero is memory never written; anything else is no header. */
			if (size)
				fr_cell_add_lost(r->owner, FR_LOSS_TORN, 1);
			break;
		}
		len += size;
	}
	return len;
}

/* The records of P..P+LEN into OUT, last one first. */
static void turn_round(const uint8_t *p, uint64_t len, uint8_t *out)
{
	uint8_t *to = out + len;
	size_t size;

	for (uint64_t at = 0; at < len; at += size) {
		size = ((const struct perf_event_header *)(p + at))->size;
		to -= size;
		memcpy(to, p + at, size);
	}
}

size_t fr_ring_marks(uint64_t ring_bytes)
{
	/* Two neighbours have more than FR_RUN_MAX together. */
	return 2 * (ring_bytes / FR_RUN_MAX) + 4;
}

size_t fr_ring_look(
	struct fr_ring *r, struct fr_tally *t, const struct fr_look_room *room, fr_run_fn sink, void *ctx)
{
	uint64_t head = load_head(r), fresh = r->tail - head, valid, done = 0, len;
	size_t n = 0, max = fr_ring_marks(r->size);
	struct fr_run run;

	if (!fresh)
		return 0;
	fresh = FR_MIN(fresh, r->size);
	copy_from(r, head, room->copy, fresh);
	valid = still_valid(r, head, fresh);
	r->tail = head;

	for (; n < max && (len = piece(room->copy + done, valid - done, r)); done += len)
		room->marks[n++] = done;
	len = done;
	while (n--) {
		turn_round(room->copy + room->marks[n], len - room->marks[n], room->out);
		if (fr_walk(room->out, room->out + (len - room->marks[n]), t, &run) == FR_WALK_TORN)
			fr_cell_add_lost(r->owner, FR_LOSS_TORN, 1);
		len = room->marks[n];
		if (run.records)
			sink(ctx, &run);
	}
	fr_tally_flush(t);
	return done;
}
