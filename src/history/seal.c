// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Seals the open chunk: it becomes a frame in the log (docs/design/21).
 *
 *     lock │ sealing = true │ unlock │ zstd, both sections │ lock │ evict, put │ sealing = false │ unlock
 */
#include "history/internal.h"
#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>

void fr_open_section_clear(struct fr_open_section *s)
{
	s->fill = 0;
	s->n = 0;
	s->first_ns = s->last_ns = 0;
	s->committed = 0;
	s->committed_crc = 0;
	atomic_store_explicit(s->image_fill, 0, memory_order_release);
}

/* Call this without the lock, while h->sealing is true: no other thread then changes the sections. Returns 0
   or -EIO. */
static int compress_sections(struct fr_history *h, struct fr_frame *ret)
{
	const struct fr_open_section *sb = &h->sideband, *sa = &h->samples;
	ssize_t sideband, samples;

	sideband = fr_codec_compress(h->codec, sb->data, sb->fill, sb->zstd, sb->zstd_bytes);
	samples = fr_codec_compress(h->codec, sa->data, sa->fill, sa->zstd, sa->zstd_bytes);
	if (sideband < 0 || samples < 0)
		return -EIO;
	*ret = (struct fr_frame){
		.seq = h->seq,
		.low_watermark_ns = h->low_watermark_ns,
		.first_ns = sa->first_ns,
		.last_ns = sa->last_ns,
		.sideband_first_ns = sb->first_ns,
		.sideband_last_ns = sb->last_ns,
		.n_samples = sa->n,
		.n_sideband = sb->n,
		.samples_raw = (uint32_t)sa->fill,
		.sideband_raw = (uint32_t)sb->fill,
		.samples = sa->zstd,
		.sideband = sb->zstd,
		.samples_len = (uint32_t)samples,
		.sideband_len = (uint32_t)sideband,
	};
	return 0;
}

static bool put_frame(struct fr_history *h, const struct fr_frame *frame) FR_REQUIRES(h->lock)
{
	const uint64_t leave = frame->samples_len ? h->sideband_reserve : 0;

	if (!fr_arena_make_room(&h->arena, fr_frame_need(frame), leave))
		return false;
	fr_history_write_back(h, fr_arena_put(&h->arena, frame), fr_frame_need(frame));
	fr_open_section_clear(&h->samples);
	fr_open_section_clear(&h->sideband);
	fr_history_open_chunk(h);
	return true;
}

/* Puts FRAME into the log, or drops its samples. FRAME is NULL if zstd failed. Returns 1 if samples were
   dropped, otherwise 0. After a drop, the side-band becomes a frame without samples. If this frame does not
   fit either, or if zstd failed, the side-band stays in its section for the next seal. */
static int put_or_drop(struct fr_history *h, struct fr_frame *frame) FR_REQUIRES(h->lock)
{
	if (frame && put_frame(h, frame))
		return 0;
	if (!h->samples.fill)
		return 0;
	h->chunks_dropped++;
	h->samples_dropped += h->samples.n;
	fr_open_section_clear(&h->samples);
	if (frame && frame->sideband_len) {
		frame->samples_len = frame->samples_raw = frame->n_samples = 0;
		frame->first_ns = frame->last_ns = 0;
		put_frame(h, frame);
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
	fr_unlock(&h->lock);

	start_ns = fr_monotonic_ns();
	r = compress_sections(h, &frame);
	start_ns = fr_monotonic_ns() - start_ns;

	fr_lock(&h->lock);
	h->compress_ns += start_ns;
	r = put_or_drop(h, r < 0 ? NULL : &frame);
	fr_history_commit(h);
	h->sealing = false;
	fr_cond_broadcast(&h->sealed);
	return r;
}
