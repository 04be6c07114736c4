/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The file that is written: records in, a finished file under a temporary name out; then its publication. */

#include "fileio/writer.h"
#include "merge/cursor.h"
#include "merge/input.h"
#include "perfdata/session.h"
#include "perfdata/writer.h"

#include <limits.h>

struct fr_output {
	char path[PATH_MAX];	       /* as asked for */
	const char *name;	       /* its last part */
	char jit[PATH_MAX + NAME_MAX]; /* where its objects go, an absolute path */
	int dirfd;		       /* its directory, locked against another merge */
	char tmp[NAME_MAX + 1];
	int fd;
	gid_t gid; /* of the files, as far as we may give it; (gid_t)-1: as they come */
	/* Writing: */
	struct fr_file_writer_config config;
	struct fr_file_writer writer;
	struct fr_writer *file;
	struct fr_buf chunk; /* records that are to be compressed */
	struct fr_buf packed;
	uint64_t bytes, since_round, raw_bytes, packed_bytes;
	char how[96]; /* fr_writer_describe() */
	bool compress;
	int level;
};

#define FR_OUTPUT_ROUND (4u << 20) /* a FINISHED_ROUND after so many bytes of records */
#define FR_OUTPUT_CHUNK (1u << 20) /* the raw size of a zstd frame, at most */

/* Find and lock the directory of the output that OPTIONS name. 0; -EBUSY; negative errno, with D. To be
   closed also after failure. */
int fr_output_open(struct fr_output *out, const struct fr_merge_options *options, struct fr_diag *d);
/* Create the temporary file and write its head. */
int fr_output_begin(struct fr_output *out, const struct fr_session *head, struct fr_diag *d);
int fr_output_record(struct fr_output *out, const struct perf_event_header *record, struct fr_diag *d);
int fr_output_run(struct fr_output *out, const struct fr_cursor_run *run, struct fr_diag *d);
/* Records that are buffered, features of HEAD (COMPRESSED is added), header, fsync. */
int fr_output_end(struct fr_output *out, struct fr_session *head, struct fr_diag *d);
/* publish.c: an older file out of the way (its new path into RET_OLDER, of PATH_MAX), the new one and META
   (NULL: none) in place. 0: the file is durable; a positive errno: it is in place, but its directory could
   not be synced. On failure the older file is where it was. */
int fr_output_publish(struct fr_output *out, const char *meta, char *ret_older, struct fr_diag *d);
/* Closes; removes the temporary file if it was not published. */
void fr_output_close(struct fr_output *out);

/* publish.c: remove the inputs that are whole and in nobody's hands, and the JSON beside them. Returns how
   many. */
size_t fr_inputs_remove(const struct fr_merge_options *options, const struct fr_inputs *in);
