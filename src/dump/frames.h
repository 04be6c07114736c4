/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in dump/ only: writes the frames of a snapshot into the file. Dumper thread. */

#include "dump/build_ids.h"
#include "dump/params.h"
#include "dump/trigger_sample.h"
#include "history/unpack.h"
#include "jit/jit.h"
#include "perfdata/writer.h"

struct fr_frames {
	const struct fr_dump_params *params;
	struct fr_file_writer *out;
	struct fr_session *session; /* gets the build-ids that are found */
	struct fr_build_ids *build_ids;
	struct fr_jit *jit;
	struct fr_buf jit_maps; /* map records to write behind the side-band of the current frame */
	struct fr_trigger_samples *trigger_samples;
	struct fr_unpack *unpack;
	struct ZSTD_CCtx_s *pack;
	uint8_t *raw, *packed; /* a decompressed section; the same section, compressed again */
	size_t packed_cap;

	struct fr_dump_result *result; /* gets the numbers of records, the times and the damage */
	uint64_t raw_bytes, packed_bytes;
};

/* What the headers of the frames tell about the file before it is written. */
struct fr_frames_plan {
	uint64_t oldest_ns; /* time of the oldest record for the dump; UINT64_MAX: there are no records */
	uint64_t bytes;
};

/* Read the headers of all frames of SNAPSHOT. The frames stay pinned, and the next fr_snapshot_next() returns
   the oldest frame again. */
void fr_frames_plan(
	struct fr_snapshot *snapshot, const struct fr_dump_params *params, struct fr_frames_plan *ret);

/* All pointers are borrowed. Returns 0 or -ENOMEM. */
int fr_frames_init(struct fr_frames *f, const struct fr_dump_params *params, struct fr_file_writer *out,
	struct fr_session *session, struct fr_build_ids *build_ids, struct fr_jit *jit,
	struct fr_trigger_samples *trigger_samples, struct fr_dump_result *result);
void fr_frames_deinit(struct fr_frames *f);

/* Write the records of FRAME that the window covers. A damaged section is left out, and counted as damaged.
   Returns 0 or a negative errno. */
int fr_frames_write(struct fr_frames *f, const struct fr_frame *frame);
