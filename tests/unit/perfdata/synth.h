/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Small perf.data files of known content, for tests of the reader and of the merge, and for fuzzing seeds.
   All functions abort() on failure. */

#include "base/buf.h"
#include "perfdata/record.h"
#include "perfdata/session.h"

/* A session of two events, "cpu-clock" with ids FIRST_ID, FIRST_ID + 1 and "dummy:HG" (side-band) with the
   next two; recorded on HOST, whose wall clock is WALL_OFFSET_NS ahead of the monotonic one. */
void synth_session(struct fr_session *s, uint64_t first_id, const char *host, uint64_t wall_offset_ns);

/* Append a record in our layout. */
void synth_sample(struct fr_buf *b, uint64_t id, uint64_t time, uint32_t tid, uint64_t ip);
void synth_comm(struct fr_buf *b, uint64_t id, uint64_t time, uint32_t tid, const char *comm);
void synth_round(struct fr_buf *b);

/* File format. FRAME_BYTES > 0: what comes after PLAIN bytes goes into zstd frames of about that size. */
void synth_write_file(const char *path, const struct fr_session *s, const struct fr_buf *records,
	size_t plain, size_t frame_bytes);
/* Pipe format. */
void synth_write_pipe(const char *path, const struct fr_session *s, const struct fr_buf *records);
void synth_write(const char *path, const void *data, size_t len);
