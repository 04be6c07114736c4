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
	if (s->runs)
		fr_regroup_clear(s->runs);
	atomic_store_explicit(s->image_fill, 0, memory_order_release);
}

/* The choice of an encoding: every TRY_EVERY frames, zstd compresses the samples of a frame both ways. A
   frame of columns has to be a fifth smaller, because a dump has to compress its samples again. */
#define TRY_EVERY 64u
/* A smaller frame is not worth it, and says little about the next frames. */
#define TRY_BYTES_MIN (16u << 10)

/* DATA are the samples of the open chunk, in the order in which they will be in the frame. */
static ssize_t compress_columns(struct fr_history *h, const uint8_t *data)
{
	const struct fr_open_section *s = &h->samples;
	const void *encoded;
	size_t at, len = fr_columns_encode(h->columns, data, s->fill, &encoded, &at);
	ssize_t records, columns;

	if (!len)
		return -EIO;
	records = fr_codec_compress(h->codec, encoded, at, s->zstd, s->zstd_bytes);
	if (records < 0)
		return records;
	columns = fr_codec_compress_columns(h->codec, (const uint8_t *)encoded + at, len - at,
		(uint8_t *)s->zstd + records, s->zstd_bytes - (size_t)records);
	return columns < 0 ? columns : records + columns;
}

static ssize_t compress_records(struct fr_history *h, const uint8_t *data)
{
	const struct fr_open_section *s = &h->samples;

	return fr_codec_compress(h->codec, data, s->fill, s->zstd, s->zstd_bytes);
}

static void choose_encoding(struct fr_history *h, const uint8_t *data)
{
	const ssize_t columns = compress_columns(h, data), records = compress_records(h, data);

	h->use_columns = columns > 0 && columns < records - records / 5;
	h->times_smaller = h->use_columns ? (double)records / (double)columns : 1;
	h->until_try = TRY_EVERY;
}

/* Compresses the samples of the open chunk. Returns the compressed length, and sets *RET to the encoding; or
   returns -EIO. */
static ssize_t compress_samples(struct fr_history *h, enum fr_encoding *ret)
{
	const uint8_t *data = fr_regroup_join(h->samples.runs, h->samples.data, h->samples.fill);

	*ret = FR_ENCODING_RECORDS;
	if (h->samples.fill < TRY_BYTES_MIN)
		return compress_records(h, data);
	if (h->until_try == 0)
		choose_encoding(h, data);
	h->until_try--;
	if (h->use_columns) {
		const ssize_t n = compress_columns(h, data);

		if (n >= 0) {
			*ret = FR_ENCODING_COLUMNS;
			return n;
		}
	}
	return compress_records(h, data);
}

/* Returns about the length of LEN bytes if they were compressed as ordinary records. */
static uint32_t estimate_dump_len(const struct fr_history *h, enum fr_encoding encoding, ssize_t len)
{
	const double times = encoding == FR_ENCODING_RECORDS ? 1 : h->times_smaller;
	const double bytes = (double)len * times;

	return bytes < (double)h->samples.fill ? (uint32_t)bytes : (uint32_t)h->samples.fill;
}

/* Call this without the lock, while h->sealing is true: no other thread then changes the sections. Returns 0
   or -EIO. */
static int compress_sections(struct fr_history *h, struct fr_frame *ret)
{
	const struct fr_open_section *sb = &h->sideband, *sa = &h->samples;
	enum fr_encoding encoding;
	ssize_t sideband, samples;

	sideband = fr_codec_compress(h->codec, sb->data, sb->fill, sb->zstd, sb->zstd_bytes);
	samples = compress_samples(h, &encoding);
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
		.samples_encoding = encoding,
		.samples_dump_len = estimate_dump_len(h, encoding, samples),
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
