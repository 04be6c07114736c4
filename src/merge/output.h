/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes the records to a file with a temporary name, and then gives the file its name. */

#include "fileio/writer.h"
#include "merge/cursor.h"
#include "merge/input.h"
#include "perfdata/auxtrace.h"
#include "perfdata/session.h"
#include "perfdata/writer.h"

#include <limits.h>

struct fr_output {
	char path[PATH_MAX];	       /* the path that the caller gave, or the default */
	const char *name;	       /* the last part of the path */
	char jit[PATH_MAX + NAME_MAX]; /* the absolute path of OUTPUT.jit, the directory of its objects */
	int dirfd; /* the directory of the output; locked, so that only one flightrec-merge works in it */
	char tmp[NAME_MAX + 1];
	int fd;
	gid_t gid; /* the group for the files, which is set if this user may set it; (gid_t)-1: no group */
	/* The members below are used from fr_output_begin() on. */
	struct fr_file_writer_config config;
	struct fr_file_writer writer;
	struct fr_writer *file;
	struct fr_buf chunk; /* records that will become one zstd frame */
	struct fr_buf packed;
	uint64_t bytes, since_round, raw_bytes, packed_bytes;
	char how[96]; /* fr_writer_describe() */
	bool compress;
	int level;
};

#define FR_OUTPUT_ROUND (4u << 20) /* after this many bytes of records, a FINISHED_ROUND is written */
#define FR_OUTPUT_CHUNK (1u << 20) /* the largest raw size of a zstd frame */

/* Finds the directory of the output that OPTIONS name, and locks it unless this is a dry run. The caller
   closes OUT, also after a failure. Returns 0; or a negative errno, with a message in D: -EBUSY if another
   flightrec-merge has the lock. */
int fr_output_open(struct fr_output *out, const struct fr_merge_options *options, struct fr_diag *d);
/* Creates the temporary file, and begins it with HEAD. fr_output_begin() and the next four functions return
   0; or a negative errno, with a message in D. */
int fr_output_begin(struct fr_output *out, const struct fr_session *head, struct fr_diag *d);
int fr_output_write_record(struct fr_output *out, const struct perf_event_header *record, struct fr_diag *d);
/* Writes an AUXTRACE record for T, and copies its T->len bytes from the place AT of the file FD. If the file
   has fewer bytes, returns -EBADMSG without a message. */
int fr_output_copy_auxtrace(
	struct fr_output *out, const struct fr_auxtrace *t, int fd, uint64_t at, struct fr_diag *d);
int fr_output_write_run(struct fr_output *out, const struct fr_cursor_run *run, struct fr_diag *d);
/* Writes the records that have not been written yet, the feature sections of HEAD and the header, and syncs
   the file. If the records are compressed, this function adds the section COMPRESSED to HEAD. */
int fr_output_end(struct fr_output *out, struct fr_session *head, struct fr_diag *d);
/* In publish.c. Appends to RET the symbols of the crashed kernel that an input has beside it. All inputs are
   of one boot, so these symbols are right for the whole output. Appends nothing if no input has symbols.
   Returns 0 or a negative errno. */
int fr_inputs_read_symbols(const struct fr_inputs *in, struct fr_buf *ret);
/* In publish.c. Renames an older output, writes the sidecar META (NULL: no sidecar) and the file of SYMBOLS
   (empty: no file), and gives the new output its name. RET_OLDER, of PATH_MAX bytes, gets the new path of the
   older output, or "" if there was no older output. Returns 0 if the output is durable; a positive errno if
   the output has its name but the directory could not be synced; or a negative errno, with a message in D.
   After an error, the older output has its old name again. */
int fr_output_publish(struct fr_output *out, const char *meta, const struct fr_buf *symbols, char *ret_older,
	struct fr_diag *d);
/* Frees OUT. Removes the temporary file, unless it was published. */
void fr_output_close(struct fr_output *out);

/* In publish.c. Removes the inputs that are not damaged and to which no flightrecd writes, with their
   sidecars, objects and symbols. Returns the number of removed inputs. */
size_t fr_inputs_remove(const struct fr_merge_options *options, const struct fr_inputs *in);
