/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes perf.data. The file format, for dumps, goes to a sink that appends. The pipe format, for
 * perf.data.auxiliary, goes to a buffer. The header of the file format (its first FR_FILE_HEADER_SIZE bytes)
 * is known only at the end.
 */

#include "base/buf.h"
#include "perfdata/session.h"

#include <stdint.h>

/* The receiver of the bytes. The function append() writes all LEN bytes. It returns 0 or a negative errno. */
struct fr_sink {
	int (*append)(void *ctx, const void *data, size_t len);
	void *ctx;
};

#define FR_FILE_HEADER_SIZE 104

struct fr_file_writer {
	struct fr_sink sink;
	uint64_t offset; /* the number of bytes that the sink has got */
	uint64_t attr_offset, attr_size, data_offset;
	uint32_t attr_bytes; /* the size of one attr in the file */
	/* From fr_file_write_auxtrace(): for each AUXTRACE record, u64 file offset and u64 header.size.
	   fr_file_end() frees it. If fr_file_end() is not called, the caller frees it by fr_buf_deinit(). */
	struct fr_buf aux_index;
};

/* Writes room for the header, then ids and attrs. The data section begins after the attrs. Returns 0, -ENOMEM
   or the errno of the sink. */
int fr_file_begin(struct fr_file_writer *w, const struct fr_session *s, const struct fr_sink *sink);
/* Writes whole records. Returns 0 or the errno of the sink. */
int fr_file_write_records(struct fr_file_writer *w, const void *records, size_t len);
/* Writes the zstd frame FRAME, which holds whole records, as COMPRESSED records (type 81) of at most 65,528
   bytes, a multiple of 8. If perf could not read such records, the function decompresses the frame and writes
   the records in it (docs/design/60). Returns 0; -EBADMSG if FRAME is not one whole frame of at most 64 MiB
   of records; -ENOMEM; or the errno of the sink. */
int fr_file_write_frame(struct fr_file_writer *w, const void *frame, size_t len);
/* Writes the feature table directly after the data, then the feature sections of S. S must have the same
   events as in fr_file_begin(). If there are AUXTRACE records, the section AUXTRACE says where they are; the
   section AUXTRACE of S is ignored. The caller then writes RET_HEADER at offset 0 of the file. Returns 0,
   -ENOMEM or the errno of the sink. */
int fr_file_end(
	struct fr_file_writer *w, const struct fr_session *s, uint8_t ret_header[static FR_FILE_HEADER_SIZE]);

/* Appends the head of a stream in pipe format: pipe header, HEADER_ATTRs with their ids, EVENT_UPDATEs with
   the names, HEADER_FEATUREs, TRACING_DATA, build-ids. The size of each record is a multiple of 8. A feature
   section that does not fit into a record (64 KiB) is left out. Returns 0 or -ENOMEM. */
int fr_pipe_append_head(const struct fr_session *s, struct fr_buf *ret);

/* Appends the HEADER_ATTR and EVENT_UPDATE of one event. In a stream, both records can also come after the
   head. Returns 0 or -ENOMEM. */
int fr_pipe_append_event(const struct fr_event_desc *e, struct fr_buf *ret);

/* A FINISHED_ROUND record. */
extern const struct perf_event_header fr_finished_round;
