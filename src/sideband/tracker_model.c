// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The two process models. Each model applies records in the order of time up to its low watermark: a time
 * such that no record that comes later is older. Younger records are pending.
 *
 *   tail  Its low watermark is that of the last evicted frame. Most side-band of that frame is younger than
 *         this time, so this side-band is pending until the next frame is evicted or a dump is written.
 *   head  Its low watermark is the start of the last complete round of the recorder.
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"

#include <string.h>

/* If more bytes are pending, all pending records are applied to the model, even out of order. */
#define PENDING_MAX (8u << 20)

static int apply(void *ctx, const struct perf_event_header *record)
{
	return fr_model_apply(ctx, record);
}

int tracker_advance(struct fr_tracker *t, struct tracker_stage *s, uint64_t low_watermark_ns)
{
	s->low_watermark_ns = FR_MAX(s->low_watermark_ns, low_watermark_ns);
	return fr_reorder_release(&s->reorder,
		s->reorder.pending.len > PENDING_MAX ? UINT64_MAX : s->low_watermark_ns, apply, s->model);
}

void tracker_apply_evicted(struct fr_tracker *t)
{
	struct tracker_evicted head;
	size_t n;
	int r;

	memcpy(&head, t->packed.data, sizeof(head));
	t->evicted_seq = head.seq;
	n = ZSTD_decompressDCtx(t->zstd, t->section, t->config.section_max, t->packed.data + sizeof(head),
		t->packed.len - sizeof(head));
	if (ZSTD_isError(n)) {
		atomic_fetch_add(&t->damaged, 1);
		atomic_store(&t->scan_wanted, true);
		return;
	}
	fr_lock(&t->lock);
	r = fr_reorder_add(&t->tail.reorder, t->section, n);
	if (r == 0)
		r = tracker_advance(t, &t->tail, head.low_watermark_ns);
	fr_unlock(&t->lock);
	/* No memory was free, so the model lacks some records. */
	if (r < 0)
		atomic_store(&t->scan_wanted, true);
}

void tracker_head_add(struct fr_tracker *t, const void *records, size_t len)
{
	if (fr_reorder_add(&t->head.reorder, records, len) < 0)
		atomic_store(&t->scan_wanted, true);
}

void tracker_head_advance(struct fr_tracker *t, uint64_t since_ns)
{
	int r;

	if (t->compaction.state == COMPACT_WRITING && t->head.reorder.pending.len <= PENDING_MAX)
		return;
	tracker_compact_stop_writing(t);
	/* Until a scan is over, more records with the time of its start may come. */
	if (t->scan_ns_now)
		since_ns = FR_MIN(since_ns, t->scan_ns_now);
	if (since_ns <= t->head.low_watermark_ns && t->head.reorder.pending.len <= PENDING_MAX)
		return;
	fr_lock(&t->lock);
	r = tracker_advance(t, &t->head, since_ns);
	fr_unlock(&t->lock);
	if (r < 0)
		atomic_store(&t->scan_wanted, true);
}
