/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * From the open chunk to a frame in the log.
 *
 *     lock │ sealing = true │ unlock │ zstd, both sections │ lock │ evict, put │ sealing = false │ unlock
 *
 * zstd takes up to a millisecond, and a snapshot must not wait for it. So it runs without the lock, on the
 * open sections themselves: who wants to append meanwhile waits (fr_history_lock()). That is nobody but the
 * side-band tracker during a scan, since otherwise the appending thread is the one that seals. A second
 * buffer would take that wait away and cost a chunk of history.
 *
 * When the log is full of pinned frames, samples go and side-band stays: without side-band, samples of others
 * could not be symbolised. First a frame of side-band alone is tried, for which the last of the reserve is
 * held back; where even that has no room, side-band stays in its section for the next seal.
 */
#include "history/internal.h"
#include "base/clock.h"

#include <stdatomic.h>

void fr_open_section_clear(struct fr_open_section *s)
{
	s->fill = 0;
	s->n = 0;
	s->first_ns = s->last_ns = 0;
	atomic_store_explicit(s->mark, 0, memory_order_release);
}

/* Sealing is set: the sections are ours, without the lock. Returns 0 or -EIO. */
static int compress_sections(struct fr_history *h, struct fr_frame *ret)
{
	ssize_t sideband, samples;

	sideband = fr_codec_compress(
		h->codec, h->sideband.data, h->sideband.fill, h->scratch_sideband, h->scratch_sideband_bytes);
	if (sideband < 0)
		return (int)sideband;
	samples = fr_codec_compress(
		h->codec, h->samples.data, h->samples.fill, h->scratch_samples, h->scratch_samples_bytes);
	if (samples < 0)
		return (int)samples;
	*ret = (struct fr_frame){
		.seq = h->seq,
		.low_watermark_ns = h->low_watermark_ns,
		.first_ns = h->samples.first_ns,
		.last_ns = h->samples.last_ns,
		.sideband_first_ns = h->sideband.first_ns,
		.sideband_last_ns = h->sideband.last_ns,
		.n_samples = h->samples.n,
		.n_sideband = h->sideband.n,
		.samples_raw = (uint32_t)h->samples.fill,
		.sideband_raw = (uint32_t)h->sideband.fill,
		.samples = h->scratch_samples,
		.sideband = h->scratch_sideband,
		.samples_len = (uint32_t)samples,
		.sideband_len = (uint32_t)sideband,
	};
	return 0;
}

static bool put(struct fr_history *h, const struct fr_frame *frame)
{
	uint64_t hold_back = frame->samples_len ? h->hold_back : 0;
	uint32_t need = fr_arena_need((uint64_t)frame->samples_len + frame->sideband_len);

	if (!fr_arena_make_room(&h->arena, need, hold_back))
		return false;
	fr_arena_put(&h->arena, frame);
	fr_open_section_clear(&h->samples);
	fr_open_section_clear(&h->sideband);
	fr_history_open_chunk(h);
	return true;
}

static void drop_samples(struct fr_history *h)
{
	h->chunks_dropped++;
	h->samples_dropped += h->samples.n;
	fr_open_section_clear(&h->samples);
}

/* FRAME NULL: it could not be made. Returns as fr_history_seal_locked(). */
static int put_or_drop(struct fr_history *h, struct fr_frame *frame)
{
	if (frame && put(h, frame))
		return 0;
	if (!h->samples.fill)
		return 0;
	drop_samples(h);
	if (frame && frame->sideband_len) {
		frame->samples_len = frame->samples_raw = frame->n_samples = 0;
		frame->first_ns = frame->last_ns = 0;
		put(h, frame);
	}
	return 1;
}

int fr_history_seal_locked(struct fr_history *h)
{
	struct fr_frame frame;
	uint64_t start_ns;
	int r;

	if (!h->samples.fill && !h->sideband.fill)
		return 0;
	h->sealing = true;
	pthread_mutex_unlock(&h->lock);

	start_ns = fr_monotonic_ns();
	r = compress_sections(h, &frame);
	start_ns = fr_monotonic_ns() - start_ns;

	pthread_mutex_lock(&h->lock);
	h->compress_ns += start_ns;
	r = put_or_drop(h, r < 0 ? NULL : &frame);
	h->sealing = false;
	pthread_cond_broadcast(&h->sealed);
	return r;
}
