// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Of a frame's two sections the window takes
 *   - samples: those with a time in it;
 *   - side-band: all up to its end, since what happened before it is what samples in it are named by.
 * A section that lies in it as a whole is passed on as it is; else it is opened, cut and packed again.
 */

#include "dump/frames.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

enum part { NONE, SOME, ALL };

struct section {
	const void *zstd;
	size_t len;
	uint32_t raw, records;
	uint64_t first_ns, last_ns;
	uint64_t from_ns, to_ns; /* what the window takes */
	bool samples;
};

static struct section samples_of(const struct fr_frame *f, const struct fr_dump_params *p)
{
	return (struct section){f->samples, f->samples_len, f->samples_raw, f->n_samples, f->first_ns,
		f->last_ns, p->from_ns, p->to_ns, true};
}

static struct section sideband_of(const struct fr_frame *f, const struct fr_dump_params *p)
{
	return (struct section){f->sideband, f->sideband_len, f->sideband_raw, f->n_sideband,
		f->sideband_first_ns, f->sideband_last_ns, 0, p->to_ns, false};
}

static enum part part_of(const struct section *s)
{
	/* A FINISHED_ROUND alone, which no window is in the way of. */
	if (s->records == 0)
		return s->len ? ALL : NONE;
	if (s->last_ns < s->from_ns || s->first_ns > s->to_ns)
		return NONE;
	return s->first_ns >= s->from_ns && s->last_ns <= s->to_ns ? ALL : SOME;
}

static void plan_section(
	const struct section *s, const struct fr_dump_params *params, struct fr_frames_plan *plan)
{
	if (part_of(s) == NONE)
		return;
	if (s->records)
		plan->oldest_ns = FR_MIN(plan->oldest_ns, FR_MAX(s->first_ns, s->from_ns));
	plan->bytes += params->compress ? s->len : s->raw;
}

void fr_frames_plan(
	struct fr_snapshot *snapshot, const struct fr_dump_params *params, struct fr_frames_plan *ret)
{
	struct fr_frame frame;

	*ret = (struct fr_frames_plan){.oldest_ns = UINT64_MAX};
	fr_snapshot_keep_pinned(snapshot, true);
	while (fr_snapshot_next(snapshot, &frame) > 0) {
		struct section samples = samples_of(&frame, params), sideband = sideband_of(&frame, params);

		plan_section(&samples, params, ret);
		plan_section(&sideband, params, ret);
	}
	fr_snapshot_rewind(snapshot);
	fr_snapshot_keep_pinned(snapshot, false);
}

int fr_frames_init(struct fr_frames *f, const struct fr_dump_params *params, struct fr_file_writer *out,
	struct fr_session *session, struct fr_build_ids *build_ids, struct fr_jit *jit,
	struct fr_marks *marks)
{
	*f = (struct fr_frames){.params = params,
		.out = out,
		.session = session,
		.build_ids = build_ids,
		.jit = jit,
		.marks = marks};
	f->packed_cap = ZSTD_compressBound(params->section_max);
	f->raw = malloc(params->section_max);
	f->packed = malloc(f->packed_cap);
	f->pack = ZSTD_createCCtx();
	if (!f->raw || !f->packed || !f->pack || fr_unpack_new(&f->unpack) < 0) {
		fr_frames_deinit(f);
		return -ENOMEM;
	}
	return 0;
}

void fr_frames_deinit(struct fr_frames *f)
{
	ZSTD_freeCCtx(f->pack);
	fr_unpack_free(f->unpack);
	free(f->raw);
	free(f->packed);
	fr_buf_deinit(&f->jit_maps);
	*f = (struct fr_frames){0};
}

static void count(struct fr_frames *f, const struct section *s, const struct fr_section_kept *kept)
{
	if (!s->samples) {
		f->sideband += kept->records;
		return;
	}
	if (kept->records == 0)
		return;
	f->first_ns = f->samples ? FR_MIN(f->first_ns, kept->first_ns) : kept->first_ns;
	f->last_ns = FR_MAX(f->last_ns, kept->last_ns);
	f->samples += kept->records;
}

/* Records that were taken out of their frame, as a frame of their own or plain. */
static int write_opened(struct fr_frames *f, size_t len)
{
	size_t n;

	if (!f->params->compress)
		return fr_file_records(f->out, f->raw, len);
	n = ZSTD_compressCCtx(f->pack, f->packed, f->packed_cap, f->raw, len, f->params->level);
	if (ZSTD_isError(n))
		return fr_file_records(f->out, f->raw, len);
	f->raw_bytes += len;
	f->packed_bytes += n;
	return fr_file_compressed(f->out, f->packed, n);
}

static int write_as_it_is(struct fr_frames *f, const struct section *s)
{
	f->raw_bytes += s->raw;
	f->packed_bytes += s->len;
	return fr_file_compressed(f->out, s->zstd, s->len);
}

/* 1: the section is not whole, and nothing of it was written. */
static int write_section(struct fr_frames *f, const struct section *s)
{
	enum part part = part_of(s);
	bool strip = s->samples && f->params->strip_rounds;
	bool as_it_is = part == ALL && !strip && f->params->compress;
	struct fr_section_kept kept = {s->records, s->first_ns, s->last_ns};
	ssize_t n = 0;
	int r;

	if (part == NONE)
		return 0;
	/* Side-band is opened even where it passes as it is: it names the files whose build-ids are wanted.
	 */
	if (!as_it_is || !s->samples)
		n = fr_section_open(f->unpack, s->zstd, s->len, f->raw, f->params->section_max);
	if (n >= 0 && (part == SOME || strip))
		n = fr_section_filter(f->raw, (size_t)n, s->from_ns, s->to_ns, strip, &kept);
	if (n < 0)
		return n == -EBADMSG ? 1 : (int)n;
	if (!s->samples) {
		r = fr_build_ids_collect(f->build_ids, f->session, f->raw, (size_t)n, &f->jit_maps);
		if (r == 0)
			r = fr_jit_append_maps(f->jit, f->raw, (size_t)n, &f->jit_maps);
		if (r < 0)
			return r;
	}
	if (!as_it_is && n == 0)
		return 0;
	r = as_it_is ? write_as_it_is(f, s) : write_opened(f, (size_t)n);
	if (r == 0)
		count(f, s, &kept);
	return r == -EBADMSG ? 1 : r;
}

/* Between the frame's two sections: no older than its side-band, and before the samples that need them.
   Nothing later than the frame goes here, or a reader would let go of samples of the next one too early. */
static int write_jit_maps(struct fr_frames *f, uint64_t last_ns)
{
	int r = fr_jit_append_functions(f->jit, FR_MIN(last_ns, f->params->to_ns), &f->jit_maps);

	if (r == 0)
		r = fr_build_ids_collect(f->build_ids, f->session, f->jit_maps.data, f->jit_maps.len, NULL);
	if (r == 0 && f->jit_maps.len > 0)
		r = fr_file_records(f->out, f->jit_maps.data, f->jit_maps.len);
	f->jit_maps.len = 0;
	return r;
}

int fr_frames_write(struct fr_frames *f, const struct fr_frame *frame)
{
	struct section sideband = sideband_of(frame, f->params), samples = samples_of(frame, f->params);
	const uint64_t last_ns = FR_MAX(sideband.last_ns, samples.last_ns);
	int r = write_section(f, &sideband);

	if (r >= 0) {
		f->damaged += (uint64_t)r;
		r = write_jit_maps(f, last_ns);
	}
	/* Marks as well: those before the end of this frame and after that of the one before it. */
	if (r >= 0)
		r = fr_marks_write(f->marks, f->out, last_ns);
	if (r >= 0)
		r = write_section(f, &samples);
	if (r >= 0)
		f->damaged += (uint64_t)r;
	return r < 0 ? r : 0;
}
