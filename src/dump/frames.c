// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A dump gets these records from the two sections of a frame:
 *   - the samples in the window of the dump;
 *   - the side-band up to the end of the window. Side-band from before the window is needed, too: it names
 *     the processes of the samples.
 * If a compressed dump gets all records of a section, and the section has the encoding of a dump (ordinary
 * records), it gets a copy of the compressed section. Otherwise the section is decompressed and filtered, and
 * is compressed again if the dump is compressed. Side-band is always decompressed: see write_section().
 */

#include "dump/frames.h"
#include "base/cleanup.h"

#include <errno.h>

enum coverage { NONE, PARTIAL, WHOLE };

struct section {
	enum fr_encoding encoding;
	const void *zstd;
	size_t len;
	size_t dump_len; /* about the length in a compressed dump */
	uint32_t raw, records;
	uint64_t first_ns, last_ns;
	uint64_t from_ns, to_ns; /* the dump gets the records from from_ns to to_ns */
	bool samples;
	unsigned ring;
};

static struct section samples_section(const struct fr_frame *f, const struct fr_dump_params *p, unsigned ring,
	uint64_t from_ns, uint64_t to_ns)
{
	if (p->rings && f->n_samples)
		from_ns = FR_MAX(from_ns, p->rings[ring].from_ns);
	return (struct section){
		.encoding = f->samples_encoding,
		.zstd = f->samples,
		.len = f->samples_len,
		.dump_len = f->samples_dump_len,
		.raw = f->samples_raw,
		.records = f->n_samples,
		.first_ns = f->first_ns,
		.last_ns = f->last_ns,
		.from_ns = FR_MAX(p->from_ns, from_ns),
		.to_ns = FR_MIN(p->to_ns, to_ns),
		.samples = true,
		.ring = ring,
	};
}

static struct section sideband_section(
	const struct fr_frame *f, const struct fr_dump_params *p, uint64_t from_ns, uint64_t to_ns)
{
	return (struct section){
		.encoding = FR_ENCODING_RECORDS,
		.zstd = f->sideband,
		.len = f->sideband_len,
		.dump_len = f->sideband_len,
		.raw = f->sideband_raw,
		.records = f->n_sideband,
		.first_ns = f->sideband_first_ns,
		.last_ns = f->sideband_last_ns,
		.from_ns = from_ns,
		.to_ns = FR_MIN(p->to_ns, to_ns),
	};
}

static enum coverage coverage_of(const struct section *s)
{
	if (s->records == 0 || s->last_ns < s->from_ns || s->first_ns > s->to_ns)
		return NONE;
	return s->first_ns >= s->from_ns && s->last_ns <= s->to_ns ? WHOLE : PARTIAL;
}

static void plan_section(
	const struct section *s, const struct fr_dump_params *params, struct fr_frames_plan *plan)
{
	if (coverage_of(s) == NONE)
		return;
	if (s->records)
		plan->oldest_ns = FR_MIN(plan->oldest_ns, FR_MAX(s->first_ns, s->from_ns));
	plan->bytes += params->compress ? s->dump_len : s->raw;
}

void fr_frames_plan(
	struct fr_snapshots *snapshots, const struct fr_dump_params *params, struct fr_frames_plan *ret)
{
	*ret = (struct fr_frames_plan){.oldest_ns = UINT64_MAX};
	fr_snapshots_keep_pinned(snapshots, true);
	for (unsigned i = 0; i < snapshots->n; i++) {
		struct fr_frame frame;

		while (fr_snapshot_next(snapshots->of[i], &frame) > 0) {
			const struct section samples = samples_section(&frame, params, i, 0, UINT64_MAX),
					     sideband = sideband_section(&frame, params, 0, UINT64_MAX);

			plan_section(&samples, params, ret);
			if (i == snapshots->sideband)
				plan_section(&sideband, params, ret);
		}
	}
	fr_snapshots_rewind(snapshots);
	fr_snapshots_keep_pinned(snapshots, false);
}

int fr_frames_init(struct fr_frames *f, const struct fr_dump_params *params, struct fr_file_writer *out,
	struct fr_session *session, struct fr_build_ids *build_ids, struct fr_jit *jit,
	struct fr_trigger_samples *trigger_samples, struct fr_dump_result *result)
{
	*f = (struct fr_frames){.params = params,
		.out = out,
		.session = session,
		.build_ids = build_ids,
		.jit = jit,
		.trigger_samples = trigger_samples,
		.result = result};
	f->packed_cap = fr_codec_bound(params->section_max);
	f->raw = malloc(params->section_max);
	f->packed = malloc(f->packed_cap);
	if (!f->raw || !f->packed || fr_unpack_new(&f->unpack) < 0 ||
		fr_codec_new(params->level, params->section_max, &f->codec) < 0) {
		fr_frames_deinit(f);
		return -ENOMEM;
	}
	return 0;
}

void fr_frames_deinit(struct fr_frames *f)
{
	fr_codec_free(f->codec);
	fr_unpack_free(f->unpack);
	free(f->raw);
	free(f->packed);
	fr_buf_deinit(&f->jit_maps);
	*f = (struct fr_frames){0};
}

static void count_part(struct fr_dump_part *p, const struct fr_section_kept *kept)
{
	p->from_ns = p->samples ? FR_MIN(p->from_ns, kept->first_ns) : kept->first_ns;
	p->to_ns = FR_MAX(p->to_ns, kept->last_ns);
	p->samples += kept->records;
}

static void count_records(struct fr_frames *f, const struct section *s, const struct fr_section_kept *kept)
{
	struct fr_dump_result *r = f->result;

	if (!s->samples) {
		r->sideband += kept->records;
		return;
	}
	if (kept->records == 0)
		return;
	r->from_ns = r->samples ? FR_MIN(r->from_ns, kept->first_ns) : kept->first_ns;
	r->to_ns = FR_MAX(r->to_ns, kept->last_ns);
	r->samples += kept->records;
	count_part(&r->parts[s->ring], kept);
}

static int write_compressed(struct fr_frames *f, const void *zstd, size_t len, size_t raw_len)
{
	f->raw_bytes += raw_len;
	f->packed_bytes += len;
	return fr_file_write_frame(f->out, zstd, len);
}

/* Writes the LEN bytes of f->raw. Compresses them if the dump is compressed; if zstd fails, writes them
   uncompressed. */
static int write_raw(struct fr_frames *f, size_t len)
{
	ssize_t n;

	if (!f->params->compress)
		return fr_file_write_records(f->out, f->raw, len);
	n = fr_codec_compress(f->codec, f->raw, len, f->packed, f->packed_cap);
	if (n < 0)
		return fr_file_write_records(f->out, f->raw, len);
	return write_compressed(f, f->packed, (size_t)n, len);
}

/* Finds the files and the run-time code that the side-band in f->raw maps: collects build-ids, and appends
   map records to f->jit_maps. Returns 0 or a negative errno. */
static int collect_names(struct fr_frames *f, size_t len)
{
	int r = fr_build_ids_collect(f->build_ids, f->session, f->raw, len, &f->jit_maps);

	return r < 0 ? r : fr_jit_append_maps(f->jit, f->raw, len, &f->jit_maps);
}

/* Writes the records of S that belong to the dump. Returns 0; 1 if the section is damaged, and no record of
   it is written; or a negative errno. */
static int write_section(struct fr_frames *f, const struct section *s)
{
	enum coverage coverage = coverage_of(s);
	bool copied = coverage == WHOLE && f->params->compress && s->encoding == FR_ENCODING_RECORDS;
	struct fr_section_kept kept = {s->records, s->first_ns, s->last_ns};
	ssize_t n = 0;
	int r = 0;

	if (coverage == NONE)
		return 0;
	/* Side-band is always decompressed, because collect_names() reads it. */
	if (!copied || !s->samples)
		n = fr_section_decompress(
			f->unpack, s->encoding, s->zstd, s->len, f->raw, f->params->section_max);
	if (n >= 0 && coverage == PARTIAL)
		n = fr_section_filter(f->raw, (size_t)n, s->from_ns, s->to_ns, &kept);
	if (n < 0)
		return n == -EBADMSG ? 1 : (int)n;
	if (!s->samples)
		r = collect_names(f, (size_t)n);
	if (r < 0 || (!copied && n == 0))
		return r;
	r = copied ? write_compressed(f, s->zstd, s->len, s->raw) : write_raw(f, (size_t)n);
	if (r == 0)
		count_records(f, s, &kept);
	return r == -EBADMSG ? 1 : r;
}

/* Writes the records that this dump adds between the two sections of a frame: after the side-band, and before
   the samples that need these records. No such record is later than LAST_NS, the newest time in the frame. At
   a FINISHED_ROUND, a reader delivers the records up to a time that it has already seen. A record that is
   later than the frame would make this time too late: the reader would deliver samples before it has read
   older samples of the next frame. */
static int write_between_sections(struct fr_frames *f, uint64_t last_ns)
{
	int r = fr_jit_append_functions(f->jit, FR_MIN(last_ns, f->params->to_ns), &f->jit_maps);

	if (r == 0)
		r = fr_build_ids_collect(f->build_ids, f->session, f->jit_maps.data, f->jit_maps.len, NULL);
	if (r == 0 && f->jit_maps.len > 0)
		r = fr_file_write_records(f->out, f->jit_maps.data, f->jit_maps.len);
	f->jit_maps.len = 0;
	return r < 0 ? r : fr_trigger_samples_write(f->trigger_samples, f->out, last_ns);
}

int fr_frames_write(struct fr_frames *f, const struct fr_piece *piece)
{
	const struct section sideband =
				     sideband_section(piece->frame, f->params, piece->from_ns, piece->to_ns),
			     samples = samples_section(
				     piece->frame, f->params, piece->ring, piece->from_ns, piece->to_ns);
	int r = 0;

	if (piece->round)
		r = fr_file_write_records(f->out, &fr_finished_round, sizeof(fr_finished_round));
	if (r == 0 && piece->sideband)
		r = write_section(f, &sideband);
	if (r >= 0) {
		f->result->damaged += (uint64_t)r;
		r = write_between_sections(f, piece->last_ns);
	}
	if (r >= 0)
		r = write_section(f, &samples);
	if (r >= 0)
		f->result->damaged += (uint64_t)r;
	return r < 0 ? r : 0;
}
