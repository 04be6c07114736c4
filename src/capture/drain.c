// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The hot path: the loop in fr_walk_records() sees every record of every ring once.
 *
 *   tail                                        head
 *    │ run ≤ 64 KiB │ run          │ …  ┐        │
 *  ──┴──────────────┴──────────────┴────┼──┬─────┴──
 *                                       │  └ copied to the bounce buffer: a record that goes over the end of
 *                                       │    the memory, or a record that has to be repaired
 *                                       └ end of the memory
 *
 * A run (records one after the other) is not copied: the receiver reads the run in the kernel ring. The
 * acquire load of data_head pairs with the kernel's store in perf_output_put_handle(). The release store of
 * data_tail ensures that we have read the records before the kernel overwrites them.
 */
#include "capture/ring.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The smallest sizes of a kernel record and of a sample in our layout (perfdata/record.h). */
#define RECORD_MIN (sizeof(struct perf_event_header) + sizeof(struct fr_sample_id))
#define SAMPLE_MIN (sizeof(struct fr_sample) + sizeof(uint64_t))
/* The distance from the time to the end of a record that is not a sample, in bytes. */
#define TIME_BEFORE_END (sizeof(struct fr_sample_id) - offsetof(struct fr_sample_id, time))
/* Another CPU has just written the records, so without a prefetch each cache line is a miss. For each record,
   the loop prefetches as many bytes as the record has, at this distance after the record's begin. */
#define PREFETCH_BYTES 2048
#define CACHE_LINE 64
/* Flags of an AUX record that mean that the hardware has lost AUX data. That older data was overwritten is
   not one of them. */
#define AUX_FLAGS_OF_LOSS (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)

static struct fr_counter_cell *cell_of(const struct fr_tally *t, uint64_t id)
{
	uint32_t slot = fr_id_table_find(t->ids, id);

	return slot == FR_ID_UNKNOWN ? t->unknown : &t->cells[slot];
}

void fr_tally_flush(struct fr_tally *t)
{
	/* Only one thread adds samples to a cell, so the addition need not be atomic. */
	if (t->pending)
		atomic_store_explicit(&t->last->samples,
			atomic_load_explicit(&t->last->samples, memory_order_relaxed) + t->pending,
			memory_order_relaxed);
	t->pending = 0;
}

/* Counts a sample with the id ID, which follows N records of a run. Returns FR_WALK_DONE; FR_WALK_UNKNOWN_ID
   if the sample has to be skipped, because ID is the id of another recorder's event (docs/design/10); or
   FR_WALK_FULL if the sample cannot be in this run, because it goes to another ring. */
static inline enum fr_walk_end count_sample(struct fr_tally *t, uint64_t id, uint32_t n)
{
	if (unlikely(id != t->last_id)) {
		struct fr_counter_cell *cell = cell_of(t, id);

		if (t->only_known && cell == t->unknown)
			return FR_WALK_UNKNOWN_ID;
		if (cell->ring != t->ring && n)
			return FR_WALK_FULL;
		t->ring = cell->ring;
		fr_tally_flush(t);
		t->last_id = id;
		t->last = cell;
	}
	t->pending++;
	return FR_WALK_DONE;
}

/* Counts the losses that the record H reports. H is whole, has at least RECORD_MIN bytes, and is not a
   sample. */
static void __attribute__((noinline)) count_losses(struct fr_tally *t, const struct perf_event_header *h)
{
	const struct fr_record_throttle *throttle = (const void *)h;
	const struct fr_record_lost *lost = (const void *)h;

	if (h->type == PERF_RECORD_LOST && h->size >= sizeof(*lost))
		fr_cell_add_lost(cell_of(t, lost->id), t->lost_as, lost->lost);
	else if (h->type == PERF_RECORD_LOST_SAMPLES && h->size >= sizeof(struct fr_record_lost_samples))
		fr_cell_add_lost(cell_of(t, fr_record_id(h)), t->lost_as,
			((const struct fr_record_lost_samples *)h)->lost);
	else if (h->type == PERF_RECORD_AUX && h->size >= sizeof(struct fr_record_aux) &&
		 ((const struct fr_record_aux *)h)->flags & AUX_FLAGS_OF_LOSS)
		fr_cell_add_lost(cell_of(t, fr_record_id(h)), FR_LOSS_AUX, 1);
	else if (h->type == PERF_RECORD_THROTTLE && h->size >= sizeof(*throttle))
		fr_cell_add_lost(cell_of(t, throttle->id), FR_LOSS_THROTTLED, 1);
}

/* Returns true if H has the flag for a build-id, but no build-id, because another recorder asked for
   build-ids (docs/design/10). */
static bool has_wrong_flag(const struct perf_event_header *h, const struct fr_tally *t)
{
	return t->no_build_ids && h->type == PERF_RECORD_MMAP2 && h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
}

static bool needs_repair(const struct perf_event_header *h, const struct fr_tally *t)
{
	return has_wrong_flag(h, t) || fr_misplaced_trailer(h, t->ids);
}

static void repair(struct perf_event_header *h, const struct fr_tally *t)
{
	if (has_wrong_flag(h, t))
		h->misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	fr_move_trailer_to_end(h, t->ids);
}

enum fr_walk_end fr_walk_records(const uint8_t *p, const uint8_t *end, struct fr_tally *t, struct fr_run *run)
{
	const uint8_t *const start = p, *const run_limit = p + (t->run_max ? t->run_max : FR_RUN_MAX);
	uint64_t first = UINT64_MAX, last = 0, time;
	enum fr_walk_end why = FR_WALK_DONE;
	uint32_t records = 0;

	while (p < end) {
		const struct perf_event_header *h = (const void *)p;
		size_t size = h->size;

		if (unlikely(size < RECORD_MIN || size & 7))
			why = FR_WALK_TORN;
		else if (unlikely(size > (size_t)(end - p)))
			why = FR_WALK_CUT;
		else if (unlikely(size > (size_t)(run_limit - p)))
			why = FR_WALK_FULL;
		if (unlikely(why != FR_WALK_DONE))
			break;
		for (size_t line = 0; line < size; line += CACHE_LINE)
			__builtin_prefetch(p + PREFETCH_BYTES + line);
		if (likely(h->type == PERF_RECORD_SAMPLE)) {
			const struct fr_sample *s = (const void *)p;

			if (unlikely(size < SAMPLE_MIN)) {
				why = FR_WALK_TORN;
				break;
			}
			why = count_sample(t, s->id, records);
			if (unlikely(why != FR_WALK_DONE))
				break;
			time = s->time;
		} else {
			if (unlikely(needs_repair(h, t))) {
				why = FR_WALK_CHANGED;
				break;
			}
			count_losses(t, h);
			time = *(const uint64_t *)(p + size - TIME_BEFORE_END);
		}
		first = FR_MIN(first, time);
		last = FR_MAX(last, time);
		records++;
		p += size;
	}
	*run = (struct fr_run){start, p - start, records, first, last, t->ring, t->cpu_index};
	return why;
}

enum fr_walk_end fr_walk_all(
	const uint8_t *p, const uint8_t *end, struct fr_tally *t, fr_run_fn sink, void *ctx)
{
	enum fr_walk_end why;
	struct fr_run run;

	do {
		why = fr_walk_records(p, end, t, &run);
		if (run.records)
			sink(ctx, &run);
		p += run.len;
	} while (why == FR_WALK_FULL && run.records);
	return why;
}

static void release_tail(struct fr_ring *r)
{
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

static void hand_out(struct fr_ring *r, const struct fr_run *run, fr_run_fn sink, void *ctx)
{
	if (!run->records)
		return;
	sink(ctx, run);
	r->tail += run->len;
	release_tail(r);
}

/* Skips the record at the tail, which is a sample of an unknown event. */
static void skip_unknown_id(struct fr_ring *r, size_t size)
{
	fr_cell_add_lost(r->owner, FR_LOSS_FOREIGN_ID, 1);
	r->tail += size;
	release_tail(r);
}

/* Copies the record at the tail to BOUNCE, repairs the copy and passes it to SINK. Returns whether the record
   is valid. */
static bool drain_bounced(
	struct fr_ring *r, uint64_t head, struct fr_tally *t, uint8_t *bounce, fr_run_fn sink, void *ctx)
{
	uint64_t at = r->tail & (r->size - 1), before_end = r->size - at;
	size_t size = ((const struct perf_event_header *)(r->data + at))->size,
	       first = FR_MIN(size, before_end);
	enum fr_walk_end why;
	struct fr_run run;

	if (size > head - r->tail)
		return false;
	memcpy(bounce, r->data + at, first);
	memcpy(bounce + first, r->data, size - first);
	repair((struct perf_event_header *)bounce, t);
	why = fr_walk_records(bounce, bounce + size, t, &run);
	if (why == FR_WALK_DONE)
		hand_out(r, &run, sink, ctx);
	else if (why == FR_WALK_UNKNOWN_ID)
		skip_unknown_id(r, size);
	return why == FR_WALK_DONE || why == FR_WALK_UNKNOWN_ID;
}

size_t fr_ring_drain(struct fr_ring *r, struct fr_tally *t, uint8_t *bounce, fr_run_fn sink, void *ctx)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE), begin = r->tail;
	bool is_valid = head - r->tail <= r->size;

	while (is_valid && r->tail != head) {
		const uint8_t *p = r->data + (r->tail & (r->size - 1));
		uint64_t left = FR_MIN(head - r->tail, (uint64_t)(r->data + r->size - p));
		struct fr_run run;
		enum fr_walk_end why = fr_walk_records(p, p + left, t, &run);

		hand_out(r, &run, sink, ctx);
		if (why == FR_WALK_TORN)
			is_valid = false;
		else if (why == FR_WALK_CUT || why == FR_WALK_CHANGED)
			is_valid = drain_bounced(r, head, t, bounce, sink, ctx);
		else if (why == FR_WALK_UNKNOWN_ID)
			skip_unknown_id(r, ((const struct perf_event_header *)(p + run.len))->size);
	}
	fr_tally_flush(t);
	if (!is_valid) {
		fr_cell_add_lost(r->owner, FR_LOSS_TORN, 1);
		r->tail = head;
		release_tail(r);
	}
	return head - begin;
}
