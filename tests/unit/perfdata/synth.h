/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Small perf.data files with known content, for tests of the reader, the writers and the merge, and for the
   seeds of fuzz targets. All functions abort() on failure. */

#include "base/buf.h"
#include "perfdata/auxtrace.h"
#include "perfdata/record.h"
#include "perfdata/session.h"

/* Makes a session of two events: "cpu-clock" with the ids FIRST_ID and FIRST_ID + 1, and "dummy:HG"
   (side-band) with the next two ids. Its features say that it was recorded on HOST, whose wall clock is
   WALL_OFFSET_NS ahead of the monotonic clock. */
void synth_session(struct fr_session *s, uint64_t first_id, const char *host, uint64_t wall_offset_ns);

/* Append a record in the layout of flightrec's events. */
void synth_sample(struct fr_buf *b, uint64_t id, uint64_t time, uint32_t tid, uint64_t ip);
void synth_comm(struct fr_buf *b, uint64_t id, uint64_t time, uint32_t tid, const char *comm);
void synth_round(struct fr_buf *b);
/* Appends an AUXTRACE record and its data. */
void synth_aux(struct fr_buf *b, const struct fr_auxtrace *t);

/* Writes the file format. If FRAME_BYTES is not 0, the records after the first PLAIN bytes are compressed
   into zstd frames of about FRAME_BYTES of records. */
void synth_write_file(const char *path, const struct fr_session *s, const struct fr_buf *records,
	size_t plain, size_t frame_bytes);
/* Writes the pipe format. */
void synth_write_pipe(const char *path, const struct fr_session *s, const struct fr_buf *records);
void synth_write(const char *path, const void *data, size_t len);
