// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Snapshots: each pins the frames from a position in the log on, so that they are not evicted. A reader needs
 * no lock to read pinned frames, because no thread writes to a frame between the call that pins it and the
 * call that unpins it. Each of these two calls takes the lock. So earlier writes to the frame come before the
 * reads, and later writes come after the reads.
 */
#include "history/internal.h"

#include <errno.h>
#include <stdlib.h>

void fr_snapshots_update_pins(struct fr_history *h)
{
	uint64_t from = UINT64_MAX;

	for (const struct fr_snapshot *s = h->snapshots; s; s = s->next)
		if (s->pinned < from)
			from = s->pinned;
	h->arena.pinned_from = from;
}

uint64_t fr_snapshots_pinned_bytes(struct fr_history *h)
{
	uint64_t end = 0;

	for (const struct fr_snapshot *s = h->snapshots; s; s = s->next)
		if (s->pinned != UINT64_MAX && s->end > end)
			end = s->end;
	end = end ? end - h->arena.pinned_from : 0;
	for (unsigned i = 0; i < h->arena.n_holes; i++)
		end += h->arena.holes[i].bytes;
	return end;
}

uint64_t fr_history_oldest_low_watermark(struct fr_history *h)
{
	uint64_t position = h->arena.tail;
	struct fr_frame frame;

	return fr_arena_next(&h->arena, &position, h->arena.head, &frame) ? frame.low_watermark_ns
									  : h->low_watermark_ns;
}

int fr_history_snapshot(struct fr_history *h, struct fr_snapshot **ret)
{
	struct fr_snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->history = h;
	fr_lock(&h->lock);
	s->start = s->at = h->arena.tail;
	s->end = h->arena.head;
	s->pinned = h->arena.frames ? s->start : UINT64_MAX;
	s->frames = h->arena.frames;
	s->samples = h->arena.samples;
	s->low_watermark_ns = fr_history_oldest_low_watermark(h);
	s->next = h->snapshots;
	h->snapshots = s;
	fr_snapshots_update_pins(h);
	fr_unlock(&h->lock);
	*ret = s;
	return 0;
}

static void set_pinned(struct fr_snapshot *s, uint64_t pinned)
{
	fr_lock(&s->history->lock);
	s->pinned = pinned;
	fr_snapshots_update_pins(s->history);
	fr_unlock(&s->history->lock);
}

void fr_snapshot_unpin(struct fr_snapshot *s)
{
	set_pinned(s, UINT64_MAX);
}

int fr_snapshot_next(struct fr_snapshot *s, struct fr_frame *ret)
{
	uint64_t from = s->at;
	bool more;

	if (s->retained) {
		more = s->retained->at < s->retained->n;
		if (more)
			*ret = s->retained->views[s->retained->at++].frame;
		return more;
	}
	more = fr_arena_next(&s->history->arena, &s->at, s->end, ret);

	if (!s->keep && s->pinned != UINT64_MAX)
		set_pinned(s, more ? from : UINT64_MAX);
	return more;
}

uint64_t fr_snapshot_next_low_watermark(const struct fr_snapshot *s)
{
	const struct fr_retained *r = s->retained;
	uint64_t at = s->at;
	struct fr_frame frame;

	if (r)
		return r->at < r->n ? r->views[r->at].frame.low_watermark_ns : UINT64_MAX;
	return fr_arena_next(&s->history->arena, &at, s->end, &frame) ? frame.low_watermark_ns : UINT64_MAX;
}

void fr_snapshot_keep_pinned(struct fr_snapshot *s, bool keep)
{
	s->keep = keep;
}

void fr_snapshot_rewind(struct fr_snapshot *s)
{
	s->at = s->start;
	if (s->retained)
		s->retained->at = 0;
}

void fr_snapshot_size(const struct fr_snapshot *s, uint64_t *ret_frames, uint64_t *ret_bytes)
{
	*ret_frames = s->frames;
	*ret_bytes = s->end - s->start;
}

uint64_t fr_snapshot_low_watermark(const struct fr_snapshot *s)
{
	return s->low_watermark_ns;
}

struct fr_snapshot *fr_snapshot_free(struct fr_snapshot *s)
{
	struct fr_snapshot **at;
	struct fr_history *h;
	bool is_last;

	if (!s)
		return NULL;
	h = s->history;
	fr_lock(&h->lock);
	for (at = &h->snapshots; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	s->retained = fr_retained_free(s->retained, h);
	fr_snapshots_update_pins(h);
	is_last = h->is_free && !h->snapshots;
	fr_unlock(&h->lock);
	free(s);
	if (is_last)
		fr_history_destroy(h);
	return NULL;
}
