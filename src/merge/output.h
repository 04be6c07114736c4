/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes the records to a file with a temporary name, then publishes the file. */

#include "fileio/writer.h"
#include "merge/cursor.h"
#include "merge/input.h"
#include "perfdata/session.h"
#include "perfdata/writer.h"

#include <limits.h>

struct fr_output {
	char path[PATH_MAX];	       /* as the caller gave it */
	const char *name;	       /* the last part of the path */
	char jit[PATH_MAX + NAME_MAX]; /* the absolute path of the directory of its objects */
	int dirfd;		       /* the directory of the output, locked against another merge */
	char tmp[NAME_MAX + 1];
	int fd;
	gid_t gid; /* the group for the files, if we may give it; (gid_t)-1: the default */
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
   Returns 0, or with D: -EBUSY if another merge has the lock, or another negative errno. */
int fr_output_open(struct fr_output *out, const struct fr_merge_options *options, struct fr_diag *d);
/* Creates the temporary file and writes its head. This and the next three functions return 0, or a negative
   errno with D. */
int fr_output_begin(struct fr_output *out, const struct fr_session *head, struct fr_diag *d);
int fr_output_write_record(struct fr_output *out, const struct perf_event_header *record, struct fr_diag *d);
int fr_output_write_run(struct fr_output *out, const struct fr_cursor_run *run, struct fr_diag *d);
/* Writes the records that wait, the features of HEAD (it adds COMPRESSED) and the header, and syncs the file.
 */
int fr_output_end(struct fr_output *out, struct fr_session *head, struct fr_diag *d);
/* publish.c: renames an older output, and gives the new one and its sidecar META (NULL: none) their names.
   RET_OLDER has PATH_MAX bytes. It gets the new path of the older output, or is empty. Returns 0 if the file
   is durable; a positive errno if it has its name but the directory could not be synced; or a negative errno
   with D, and the older output keeps its name. */
int fr_output_publish(struct fr_output *out, const char *meta, char *ret_older, struct fr_diag *d);
/* Removes the temporary file unless it was published. */
void fr_output_close(struct fr_output *out);

/* publish.c: removes the inputs that are whole and that no daemon writes to, with their sidecars and objects.
   Returns the number of removed inputs. */
size_t fr_inputs_remove(const struct fr_merge_options *options, const struct fr_inputs *in);
