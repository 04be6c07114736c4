// SPDX-License-Identifier: GPL-2.0-or-later
#include "history/rings.h"
#include "base/cleanup.h"
#include "history/internal.h"
#include "history/unpack.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls FN for each ring, also for that of the side-band. */
#define FOR_EACH(r, h)                                                                                       \
	for (unsigned i_ = 0; i_ <= (r)->n; i_++)                                                            \
		for (struct fr_history *h = i_ < (r)->n ? (r)->ring[i_] : (r)->sideband; h; h = NULL)

void fr_rings_set_name(struct fr_rings *r, unsigned ring, const char *name)
{
	snprintf(r->name[ring], sizeof(r->name[ring]), "%s", name);
}

void fr_rings_take_named(struct fr_rings *r, const struct fr_rings *from)
{
	for (unsigned i = 1; i < from->n; i++)
		r->ring[i] = from->ring[i];
	memcpy(r->name, from->name, sizeof(r->name));
	r->n = from->n;
}

void fr_rings_begin_round(const struct fr_rings *r, uint64_t since_ns)
{
	FOR_EACH(r, h)
	{
		fr_history_begin_round(h, since_ns);
		if (h != fr_rings_sideband(r))
			fr_history_follow_rounds(h);
	}
}

void fr_rings_end_round(const struct fr_rings *r)
{
	FOR_EACH(r, h)
	fr_history_end_round(h);
}

void fr_rings_seal(const struct fr_rings *r)
{
	FOR_EACH(r, h)
	(void)fr_history_seal(h);
}

size_t fr_rings_section_max(const struct fr_rings *r)
{
	size_t most = 0;

	FOR_EACH(r, h)
	most = FR_MAX(most, fr_history_section_max(h));
	return most;
}

size_t fr_rings_append_max(const struct fr_rings *r)
{
	size_t least = SIZE_MAX;

	FOR_EACH(r, h)
	least = FR_MIN(least, fr_history_append_max(h));
	return least;
}

static void add_counters(struct fr_history_stats *to, const struct fr_history_stats *s)
{
	to->frames_evicted += s->frames_evicted;
	to->samples_evicted += s->samples_evicted;
	to->chunks_dropped += s->chunks_dropped;
	to->samples_dropped += s->samples_dropped;
	to->sideband_dropped += s->sideband_dropped;
	to->compress_ns += s->compress_ns;
}

void fr_rings_stats(const struct fr_rings *r, struct fr_history_stats *ret)
{
	*ret = r->dropped;
	ret->low_watermark_ns = UINT64_MAX;
	FOR_EACH(r, h)
	{
		struct fr_history_stats s;

		fr_history_stats(h, &s);
		ret->size_bytes += s.size_bytes;
		ret->used_bytes += s.used_bytes;
		ret->raw_bytes += s.raw_bytes;
		if (s.first_ns)
			ret->first_ns = ret->first_ns ? FR_MIN(ret->first_ns, s.first_ns) : s.first_ns;
		ret->last_ns = FR_MAX(ret->last_ns, s.last_ns);
		ret->low_watermark_ns = FR_MIN(ret->low_watermark_ns, s.low_watermark_ns);
		ret->frames += s.frames;
		ret->samples += s.samples;
		if (h == fr_rings_sideband(r)) /* the other rings can have older copies */
			ret->sideband += s.sideband;
		ret->pinned_bytes += s.pinned_bytes;
		add_counters(ret, &s);
	}
}

void fr_rings_count_dropped(struct fr_rings *r, struct fr_history *h)
{
	struct fr_history_stats s;

	fr_history_stats(h, &s);
	s.frames_evicted += s.frames;
	s.samples_evicted += s.samples;
	add_counters(&r->dropped, &s);
}

/* Appends the side-band of F, which are whole records, to TO. */
static int append_sideband(
	struct fr_history *to, const struct fr_frame *f, struct fr_unpack *u, uint8_t *raw, size_t max)
{
	const ssize_t n = fr_frame_sideband(u, f, raw, max);

	if (n < 0)
		return n == -EBADMSG ? 0 : (int)n; /* a damaged section has no records */
	fr_history_set_since(to, f->low_watermark_ns);
	for (size_t at = 0, end; at < (size_t)n; at = end) {
		uint64_t first = UINT64_MAX, last = 0;
		uint32_t records = 0;

		for (end = at; end < (size_t)n; records++) {
			const struct perf_event_header *h = (const void *)(raw + end);
			const uint64_t t = fr_record_time(h);

			if (end + h->size - at > FR_HISTORY_RUN_MAX)
				break;
			first = FR_MIN(first, t);
			last = FR_MAX(last, t);
			end += h->size;
		}
		(void)fr_history_append_sideband(to, raw + at, end - at, records, first, last);
	}
	return 0;
}

int fr_rings_copy_sideband(struct fr_snapshot *s, size_t section_max, uint64_t after_seq,
	struct fr_history *to, uint64_t *ret_seq)
{
	struct fr_unpack *u = NULL;
	uint8_t *raw = malloc(section_max);
	struct fr_frame f;
	int r = raw ? fr_unpack_new(&u) : -ENOMEM;

	*ret_seq = after_seq;
	if (!after_seq) /* the first frames can have no side-band, and are complete nevertheless */
		fr_history_begin_at(to, fr_snapshot_low_watermark(s));
	fr_snapshot_keep_pinned(s, true);
	while (r == 0 && fr_snapshot_next(s, &f) > 0) {
		if (f.seq > after_seq && f.n_sideband)
			r = append_sideband(to, &f, u, raw, section_max);
		*ret_seq = FR_MAX(*ret_seq, f.seq);
	}
	fr_unpack_free(u);
	free(raw);
	return r;
}

int fr_rings_move_sideband(struct fr_rings *r, struct fr_history *to)
{
	struct fr_history *from = r->ring[0];
	struct fr_snapshot *s = NULL;
	uint64_t seq;
	int code;

	(void)fr_history_seal(from); /* the snapshot then has the open chunk, too */
	code = fr_history_snapshot(from, &s);
	if (code == 0)
		code = fr_rings_copy_sideband(s, fr_history_section_max(from), 0, to, &seq);
	fr_snapshot_free(s);
	if (code < 0)
		fr_history_free(to);
	else
		r->sideband = to;
	return code;
}

int fr_rings_snapshot(const struct fr_rings *r, struct fr_snapshots *ret)
{
	*ret = (struct fr_snapshots){.n_rings = r->n, .sideband = r->sideband ? r->n : 0};
	memcpy(ret->name, r->name, sizeof(ret->name));
	FOR_EACH(r, h)
	{
		int code = fr_history_snapshot(h, &ret->of[ret->n]);

		if (code < 0) {
			fr_snapshots_free(ret);
			return code;
		}
		ret->n++;
	}
	return 0;
}

void fr_snapshots_of_one(struct fr_snapshots *s, struct fr_snapshot *snapshot)
{
	*s = (struct fr_snapshots){.of = {snapshot}, .n = 1, .n_rings = 1};
}

void fr_snapshots_free(struct fr_snapshots *s)
{
	for (unsigned i = 0; i < s->n; i++)
		fr_snapshot_free(s->of[i]);
	*s = (struct fr_snapshots){0};
}

uint64_t fr_snapshots_low_watermark(const struct fr_snapshots *s)
{
	return fr_snapshot_low_watermark(s->of[s->sideband]);
}

uint64_t fr_snapshots_oldest_ns(const struct fr_snapshots *s)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned i = 0; i < s->n; i++)
		oldest = FR_MIN(oldest, fr_snapshot_low_watermark(s->of[i]));
	return oldest;
}

void fr_snapshots_keep_pinned(struct fr_snapshots *s, bool keep)
{
	for (unsigned i = 0; i < s->n; i++)
		fr_snapshot_keep_pinned(s->of[i], keep);
}

void fr_snapshots_rewind(struct fr_snapshots *s)
{
	for (unsigned i = 0; i < s->n; i++)
		fr_snapshot_rewind(s->of[i]);
}

void fr_snapshots_size(const struct fr_snapshots *s, uint64_t *ret_frames, uint64_t *ret_bytes)
{
	*ret_frames = *ret_bytes = 0;
	for (unsigned i = 0; i < s->n; i++) {
		uint64_t frames, bytes;

		fr_snapshot_size(s->of[i], &frames, &bytes);
		*ret_frames += frames;
		*ret_bytes += bytes;
	}
}

/* Returns the number of samples in the frames of S, a retained snapshot, that are older than LOW_WATERMARK_NS
   as a whole. */
static uint64_t count_older(struct fr_snapshot *s, uint64_t low_watermark_ns)
{
	uint64_t samples = 0;
	struct fr_frame f;

	while (fr_snapshot_next(s, &f) > 0 && f.last_ns < low_watermark_ns)
		samples += f.n_samples;
	fr_snapshot_rewind(s);
	return samples;
}

int fr_snapshots_retain(struct fr_snapshots *s, uint64_t *ret_lost)
{
	bool any = false;

	*ret_lost = 0;
	for (unsigned i = 0; i < s->n; i++) {
		uint64_t lost = 0;
		int r = fr_snapshot_retain(s->of[i], &lost);

		if (r < 0)
			return r;
		any |= r == 0;
		*ret_lost += lost;
	}
	for (unsigned i = 0; i < s->n; i++)
		if (i != s->sideband)
			*ret_lost += count_older(s->of[i], fr_snapshots_low_watermark(s));
	return any ? 0 : 1;
}

uint64_t fr_snapshots_evicted_samples(struct fr_snapshots *s)
{
	uint64_t samples = 0;

	for (unsigned i = 0; i < s->n; i++)
		samples += fr_snapshot_evicted_samples(s->of[i]);
	return samples;
}

void fr_snapshots_unpin(struct fr_snapshots *s)
{
	for (unsigned i = 0; i < s->n; i++)
		fr_snapshot_unpin(s->of[i]);
}
