/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writing perf.data, append-only, onto any sink: the file format (attrs first, features after the data; its
 * first FR_FILE_HEADER_SIZE bytes are known last) and the pipe format (for perf.data.auxiliary).
 */

#include "base/buf.h"
#include "perfdata/session.h"

#include <stdint.h>

/* Where bytes go. APPEND takes all of LEN or fails with a negative errno. */
struct fr_sink {
	int (*append)(void *ctx, const void *data, size_t len);
	void *ctx;
};

#define FR_FILE_HEADER_SIZE 104

struct fr_file_writer {
	struct fr_sink sink;
	uint64_t offset; /* bytes given to the sink so far */
	uint64_t attr_offset, attr_size, data_offset;
	uint32_t attr_bytes; /* of each attr in the file, without its ids' section */
};

/* Header (zeroed), ids, attrs. The data section starts after it. 0 or a negative errno: -ENOMEM or the
   sink's. */
int fr_file_begin(struct fr_file_writer *w, const struct fr_session *s, const struct fr_sink *sink);
/* Whole records. 0 or the sink's errno. */
int fr_file_write_records(struct fr_file_writer *w, const void *records, size_t len);
/* One whole zstd frame of records, cut into COMPRESSED records (type 81) of at most 65,528 bytes each, a
   multiple of 8. A frame of which a cut would hold no end of a block is opened and written plain: perf gives
   up at a COMPRESSED record that yields nothing. 0, -EBADMSG where ZSTD is no whole frame of at most 64 MiB,
   -ENOMEM, or the sink's errno. */
int fr_file_write_frame(struct fr_file_writer *w, const void *zstd, size_t len);
/* The feature table exactly behind the data, the sections of S (its events as given to fr_file_begin()); then
   the header's bytes, to be written at offset 0. */
int fr_file_end(
	struct fr_file_writer *w, const struct fr_session *s, uint8_t ret_header[static FR_FILE_HEADER_SIZE]);

/* Append the head of a pipe-format stream: pipe header, HEADER_ATTRs with their ids and EVENT_UPDATE names,
   HEADER_FEATUREs, TRACING_DATA, BUILD_IDs. Every record's size is a multiple of 8. A section or a list of
   ids that does not fit a record (64 KiB) is left out or cut. 0 or -ENOMEM. */
int fr_pipe_append_head(const struct fr_session *s, struct fr_buf *ret);

/* One event of it: HEADER_ATTR and EVENT_UPDATE. A stream may have more of them behind its head. 0 or
 * -ENOMEM. */
int fr_pipe_append_event(const struct fr_event_desc *e, struct fr_buf *ret);

/* The eight bytes of a FINISHED_ROUND. */
extern const struct perf_event_header fr_finished_round;
