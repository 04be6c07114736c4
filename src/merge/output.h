/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The output: records in, a finished file under a temporary name out; then its publication. */

#include "fileio/writer.h"
#include "merge/cursor.h"
#include "merge/input.h"
#include "perfdata/session.h"
#include "perfdata/writer.h"

#include <limits.h>

struct fr_output {
	char path[PATH_MAX];	       /* as the caller gave it */
	const char *name;	       /* its last part */
	char jit[PATH_MAX + NAME_MAX]; /* the absolute path of its objects' directory */
	int dirfd;		       /* its directory, locked against another merge */
	char tmp[NAME_MAX + 1];
	int fd;
	gid_t gid; /* the group for the files, as far as we may give it; (gid_t)-1: the default */
	/* Writing: */
	struct fr_file_writer_config config;
	struct fr_file_writer writer;
	struct fr_writer *file;
	struct fr_buf chunk; /* records that wait for their compression */
	struct fr_buf packed;
	uint64_t bytes, since_round, raw_bytes, packed_bytes;
	char how[96]; /* fr_writer_describe() */
	bool compress;
	int level;
};

#define FR_OUTPUT_ROUND (4u << 20) /* bytes of records between two FINISHED_ROUNDs */
#define FR_OUTPUT_CHUNK (1u << 20) /* the largest raw size of a zstd frame */

/* Finds and locks the directory of the output that OPTIONS name. The caller closes OUT, also after failure.
   0; -EBUSY (another merge has the lock); or another negative errno, with D. */
int fr_output_open(struct fr_output *out, const struct fr_merge_options *options, struct fr_diag *d);
/* Creates the temporary file and writes its head. This and the next three: 0 or a negative errno, with D. */
int fr_output_begin(struct fr_output *out, const struct fr_session *head, struct fr_diag *d);
int fr_output_write_record(struct fr_output *out, const struct perf_event_header *record, struct fr_diag *d);
int fr_output_write_run(struct fr_output *out, const struct fr_cursor_run *run, struct fr_diag *d);
/* Writes the records that wait, the features of HEAD (it adds COMPRESSED) and the header, and syncs the file.
 */
int fr_output_end(struct fr_output *out, struct fr_session *head, struct fr_diag *d);
/* publish.c: moves an older output aside (RET_OLDER, of PATH_MAX: its new path, or empty) and puts the new
   one and its sidecar META (NULL: none) in place. 0: the file is durable; a positive errno: it is in place,
   but its directory could not be synced; a negative errno with D: the older output is where it was. */
int fr_output_publish(struct fr_output *out, const char *meta, char *ret_older, struct fr_diag *d);
/* Removes the temporary file unless it was published. */
void fr_output_close(struct fr_output *out);

/* publish.c: removes the inputs that are whole and that no daemon writes to, with their sidecars and objects.
   Returns how many. */
size_t fr_inputs_remove(const struct fr_merge_options *options, const struct fr_inputs *in);
