// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The two models. Both take records in the order of time, up to a horizon that nothing later can be older
 * than; what is younger is held back.
 *
 *   tail  The horizon comes with each evicted frame, and is the frame's own: what was evicted before it and
 *         is older is complete. So the frame's side-band itself waits for the next one, or for a dump.
 *   head  The horizon is the begin of the recorder's last whole round.
 */
#include "sideband/keeper_internal.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <string.h>

/* A stage that holds back more than this is given up on: all goes out, at the price of its order. */
#define HELD_MAX (8u << 20)

static int apply(void *ctx, const struct perf_event_header *record)
{
	return fr_model_apply(ctx, record);
}

int keeper_advance(struct keeper_stage *s, uint64_t horizon_ns)
{
	s->horizon_ns = FR_MAX(s->horizon_ns, horizon_ns);
	return fr_reorder_release(
		&s->reorder, s->reorder.held.len > HELD_MAX ? UINT64_MAX : s->horizon_ns, apply, s->model);
}

void keeper_apply_evicted(struct fr_keeper *k)
{
	uint64_t horizon_ns;
	size_t n;
	int r;

	memcpy(&horizon_ns, k->packed.data, sizeof(horizon_ns));
	n = ZSTD_decompressDCtx(k->zstd, k->section, k->config.section_max,
		k->packed.data + sizeof(horizon_ns), k->packed.len - sizeof(horizon_ns));
	if (ZSTD_isError(n)) {
		atomic_fetch_add(&k->damaged, 1);
		atomic_store(&k->scan_wanted, true);
		return;
	}
	pthread_mutex_lock(&k->lock);
	r = fr_reorder_add(&k->tail.reorder, k->section, n);
	if (r == 0)
		r = keeper_advance(&k->tail, horizon_ns);
	pthread_mutex_unlock(&k->lock);
	/* No memory: some of it is missing in the model now. */
	if (r < 0)
		atomic_store(&k->scan_wanted, true);
}

void keeper_head_add(struct fr_keeper *k, const void *records, size_t len)
{
	if (fr_reorder_add(&k->head.reorder, records, len) < 0)
		atomic_store(&k->scan_wanted, true);
}

void keeper_head_advance(struct fr_keeper *k, uint64_t since_ns)
{
	int r;

	if (k->compaction.state == COMPACT_WRITING && k->head.reorder.held.len <= HELD_MAX)
		return;
	keeper_compact_stop_writing(k);
	/* A scan's records may come until it is over, and all have the time of its begin. */
	if (k->scan_ns_now)
		since_ns = FR_MIN(since_ns, k->scan_ns_now);
	if (since_ns <= k->head.horizon_ns && k->head.reorder.held.len <= HELD_MAX)
		return;
	pthread_mutex_lock(&k->lock);
	r = keeper_advance(&k->head, since_ns);
	pthread_mutex_unlock(&k->lock);
	if (r < 0)
		atomic_store(&k->scan_wanted, true);
}

int keeper_tell(struct fr_keeper *k, const struct fr_buf *run, uint32_t n, uint64_t time_ns)
{
	int r;

	if (!run->len)
		return 0;
	keeper_file_append(k, run->data, run->len);
	keeper_head_add(k, run->data, run->len);
	r = k->config.inject(k->config.ctx, run->data, run->len, n, time_ns, time_ns);
	/* The ring had no room: once more, when it has. */
	if (r == 1)
		atomic_store(&k->scan_wanted, true);
	return r < 0 ? r : 0;
}
