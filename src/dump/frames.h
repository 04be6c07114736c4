/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside dump/: the frames of a snapshot on their way into the file. */

#include "dump/build_ids.h"
#include "dump/dump.h"
#include "dump/mark.h"
#include "history/unpack.h"
#include "jit/jit.h"
#include "perfdata/writer.h"

struct fr_frames {
	const struct fr_dump_params *params;
	struct fr_file_writer *out;
	struct fr_session *session; /* gets the build-ids */
	struct fr_build_ids *build_ids;
	struct fr_jit *jit;
	struct fr_buf jit_maps; /* of one frame */
	struct fr_marks *marks;
	struct fr_unpack *unpack;
	struct ZSTD_CCtx_s *pack;
	uint8_t *raw, *packed; /* a section, opened and packed again */
	size_t packed_cap;

	/* what was written */
	uint64_t samples, sideband, damaged;
	uint64_t first_ns, last_ns;
	uint64_t raw_bytes, packed_bytes;
};

/* What will be written, by the frames' headers alone. */
struct fr_frames_plan {
	uint64_t oldest_ns; /* of all records; UINT64_MAX: there are none */
	uint64_t bytes;	    /* about so many */
};

/* Go through all of SNAPSHOT (which keeps its pins, and is at its oldest frame afterwards). */
void fr_frames_plan(
	struct fr_snapshot *snapshot, const struct fr_dump_params *params, struct fr_frames_plan *ret);

/* SESSION, OUT, BUILD_IDS, JIT and MARKS are borrowed. 0 or -ENOMEM. */
int fr_frames_init(struct fr_frames *f, const struct fr_dump_params *params, struct fr_file_writer *out,
	struct fr_session *session, struct fr_build_ids *build_ids, struct fr_jit *jit,
	struct fr_marks *marks);
void fr_frames_deinit(struct fr_frames *f);
#define _cleanup_frames_ _cleanup_(fr_frames_deinit)

/* Write what of FRAME belongs into the window. A section that is not whole is left out and counted. 0 or a
   negative errno. */
int fr_frames_write(struct fr_frames *f, const struct fr_frame *frame);
