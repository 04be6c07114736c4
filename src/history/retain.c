// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Retained snapshots, whose dumps have failed: new frames leave out a range of the log, because the snapshot
 * still needs its bytes (docs/design/24).
 *
 *     offset 0                                                        bytes
 *     │ newest ──▶ head │ free │ retained: frames that are evicted, but   │ tail ──▶ … │
 *     │                 │      │ keep their bytes                         │            │
 */
#include "history/internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

#define BYTES_MAX (2ULL << 30) /* the length of a pad has 32 bits */

struct fr_retained *fr_retained_free(struct fr_retained *retained, struct fr_history *h)
{
	if (!retained)
		return NULL;
	/* Wipe the frames that the ring has evicted. Otherwise recovery after a crash would find these
	   frames, with a gap between them and the newer frames. The first frame of a hole can have become a
	   pad: a pad is not wiped. */
	for (size_t i = 0; i < retained->n; i++) {
		struct fr_frame_header *f =
			(struct fr_frame_header *)(uintptr_t)retained->views[i].frame.sideband - 1;

		if (retained->views[i].end <= h->arena.tail && f->entry.magic == FR_FRAME_MAGIC)
			fr_entry_wipe(&f->entry);
	}
	fr_arena_unprotect(&h->arena);
	free(retained);
	return NULL;
}

/* Returns the largest number of bytes that a retained snapshot may have. The ring needs the rest for new
   frames, for its reserve, and for bytes before a hole that are too few for the next frame. */
static uint64_t max_bytes(const struct fr_arena *a)
{
	uint64_t most = FR_MIN(a->bytes / 2, BYTES_MAX);

	return a->bytes > 3 * a->reserve ? FR_MIN(most, a->bytes - 3 * a->reserve) : 0;
}

/* Finds the newest frames of S that fit into MOST bytes. Returns the position of the oldest of these frames,
   and the number of these frames in *RET_N. */
static uint64_t find_first_that_fits(const struct fr_snapshot *s, uint64_t most, size_t *ret_n)
{
	const struct fr_arena *a = &s->history->arena;
	uint64_t position = FR_MAX(s->start, a->tail), from = s->end;
	struct fr_frame frame;
	size_t n = 0;

	for (uint64_t at = position; fr_arena_next(a, &position, s->end, &frame); at = position) {
		if (s->end - at > most)
			continue;
		from = n == 0 ? at : from;
		n++;
	}
	*ret_n = n;
	return from;
}

static struct fr_retained *make_views(
	const struct fr_snapshot *s, uint64_t from, size_t n, uint64_t *ret_samples)
{
	struct fr_retained *retained = malloc(sizeof(*retained) + n * sizeof(retained->views[0]));

	if (!retained)
		return NULL;
	retained->n = retained->at = 0;
	*ret_samples = 0;
	for (uint64_t at = from; retained->n < n; retained->n++) {
		struct fr_retained_view *v = &retained->views[retained->n];

		(void)fr_arena_next(&s->history->arena, &at, s->end, &v->frame);
		v->end = at;
		*ret_samples += v->frame.n_samples;
	}
	return retained;
}

static int retain(struct fr_snapshot *s, uint64_t *ret_lost) FR_REQUIRES(s->history->lock)
{
	struct fr_arena *a = &s->history->arena;
	uint64_t from, samples;
	size_t n;

	if (a->n_holes)
		return -EBUSY;
	from = find_first_that_fits(s, max_bytes(a), &n);
	if (n == 0) {
		*ret_lost = s->samples;
		s->start = s->at = s->end;
		s->frames = s->samples = 0;
		return 1;
	}
	s->pinned = from;
	fr_snapshots_update_pins(s->history);
	if (!fr_arena_evict_to(a, from))
		return -EBUSY;
	s->retained = make_views(s, from, n, &samples);
	if (!s->retained)
		return -ENOMEM;
	fr_arena_protect(a, from, s->end);
	*ret_lost = s->samples - samples;
	s->frames = n;
	s->start = s->at = from;
	s->samples = samples;
	s->low_watermark_ns = s->retained->views[0].frame.low_watermark_ns;
	return 0;
}

uint64_t fr_snapshot_evicted_samples(struct fr_snapshot *s)
{
	uint64_t samples = 0;

	fr_history_lock(s->history);
	for (size_t i = 0; s->retained && i < s->retained->n; i++)
		if (s->retained->views[i].end <= s->history->arena.tail)
			samples += s->retained->views[i].frame.n_samples;
	fr_unlock(&s->history->lock);
	return samples;
}

int fr_snapshot_retain(struct fr_snapshot *s, uint64_t *ret_lost)
{
	int r;

	fr_history_lock(s->history);
	r = retain(s, ret_lost);
	if (r != 0) {
		s->pinned = UINT64_MAX;
		fr_snapshots_update_pins(s->history);
	}
	fr_unlock(&s->history->lock);
	return r;
}
