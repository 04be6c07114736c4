// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The two models. Both take records in the order of time, up to a low watermark that nothing later can be
 * older than; what is younger is held back.
 *
 *   tail  The low watermark comes with each evicted frame, and is the frame's own: what was evicted before it
 * and is older is complete. So the frame's side-band itself waits for the next one, or for a dump. head  The
 * low watermark is the begin of the recorder's last whole round.
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <string.h>

/* A stage that holds back more than this is given up on: all goes out, at the price of its order. */
#define HELD_MAX (8u << 20)

static int apply(void *ctx, const struct perf_event_header *record)
{
	return fr_model_apply(ctx, record);
}

int tracker_advance(struct tracker_stage *s, uint64_t low_watermark_ns)
{
	s->low_watermark_ns = FR_MAX(s->low_watermark_ns, low_watermark_ns);
	return fr_reorder_release(&s->reorder,
		s->reorder.held.len > HELD_MAX ? UINT64_MAX : s->low_watermark_ns, apply, s->model);
}

void tracker_apply_evicted(struct fr_tracker *k)
{
	uint64_t low_watermark_ns;
	size_t n;
	int r;

	memcpy(&low_watermark_ns, k->packed.data, sizeof(low_watermark_ns));
	n = ZSTD_decompressDCtx(k->zstd, k->section, k->config.section_max,
		k->packed.data + sizeof(low_watermark_ns), k->packed.len - sizeof(low_watermark_ns));
	if (ZSTD_isError(n)) {
		atomic_fetch_add(&k->damaged, 1);
		atomic_store(&k->scan_wanted, true);
		return;
	}
	pthread_mutex_lock(&k->lock);
	r = fr_reorder_add(&k->tail.reorder, k->section, n);
	if (r == 0)
		r = tracker_advance(&k->tail, low_watermark_ns);
	pthread_mutex_unlock(&k->lock);
	/* No memory: some of it is missing in the model now. */
	if (r < 0)
		atomic_store(&k->scan_wanted, true);
}

void tracker_head_add(struct fr_tracker *k, const void *records, size_t len)
{
	if (fr_reorder_add(&k->head.reorder, records, len) < 0)
		atomic_store(&k->scan_wanted, true);
}

void tracker_head_advance(struct fr_tracker *k, uint64_t since_ns)
{
	int r;

	if (k->compaction.state == COMPACT_WRITING && k->head.reorder.held.len <= HELD_MAX)
		return;
	tracker_compact_stop_writing(k);
	/* A scan's records may come until it is over, and all have the time of its begin. */
	if (k->scan_ns_now)
		since_ns = FR_MIN(since_ns, k->scan_ns_now);
	if (since_ns <= k->head.low_watermark_ns && k->head.reorder.held.len <= HELD_MAX)
		return;
	pthread_mutex_lock(&k->lock);
	r = tracker_advance(&k->head, since_ns);
	pthread_mutex_unlock(&k->lock);
	if (r < 0)
		atomic_store(&k->scan_wanted, true);
}

int tracker_tell(struct fr_tracker *k, const struct fr_buf *run, uint32_t n, uint64_t time_ns)
{
	int r;

	if (!run->len)
		return 0;
	tracker_file_append(k, run->data, run->len);
	tracker_head_add(k, run->data, run->len);
	r = k->config.inject(k->config.ctx, run->data, run->len, n, time_ns, time_ns);
	/* The ring had no room: once more, when it has. */
	if (r == 1)
		atomic_store(&k->scan_wanted, true);
	return r < 0 ? r : 0;
}
