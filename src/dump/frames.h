/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in dump/ only: writes the frames of a snapshot to the file of the dump. A frame has a section of
   side-band (records that are not samples) and a section of samples, each compressed by zstd. A snapshot pins
   frames, so that the ring does not evict them. Only the dumper thread calls these functions. */

#include "dump/build_ids.h"
#include "dump/order.h"
#include "dump/params.h"
#include "dump/trigger_sample.h"
#include "history/codec.h"
#include "history/unpack.h"
#include "jit/jit.h"
#include "perfdata/writer.h"

struct fr_frames {
	const struct fr_dump_params *params;
	struct fr_file_writer *out;
	struct fr_session *session; /* gets the build-ids of mapped files */
	struct fr_build_ids *build_ids;
	struct fr_jit *jit;
	struct fr_buf jit_maps; /* map records to write after the side-band of the current frame */
	struct fr_trigger_samples *trigger_samples;
	struct fr_unpack *unpack;
	struct fr_codec *codec;
	uint8_t *raw, *packed; /* raw: a decompressed section; packed: the same section, compressed again */
	size_t packed_cap;

	struct fr_dump_result *result; /* gets the numbers of records, the times and the damage */
	uint64_t raw_bytes, packed_bytes;
};

/* Facts about the file that the headers of the frames give before the file is written. */
struct fr_frames_plan {
	/* The dump gets no older record from the frames. UINT64_MAX: it gets no record from the frames. */
	uint64_t oldest_ns;
	uint64_t bytes; /* estimated size of the records in the file */
};

/* Reads the headers of all frames of SNAPSHOTS. The frames stay pinned, and the next fr_snapshot_next()
   returns the oldest frame again. */
void fr_frames_plan(
	struct fr_snapshots *snapshots, const struct fr_dump_params *params, struct fr_frames_plan *ret);

/* All pointers are borrowed. Returns 0 or -ENOMEM. */
int fr_frames_init(struct fr_frames *f, const struct fr_dump_params *params, struct fr_file_writer *out,
	struct fr_session *session, struct fr_build_ids *build_ids, struct fr_jit *jit,
	struct fr_trigger_samples *trigger_samples, struct fr_dump_result *result);
void fr_frames_deinit(struct fr_frames *f);

/* Writes the records of PIECE that belong to the dump: the samples in the window, and the side-band up to the
   end of the window. If a section is damaged, it is left out and counted. Returns 0 or a negative errno. */
int fr_frames_write(struct fr_frames *f, const struct fr_piece *piece);
