/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The files to merge: found, opened, looked over. */

#include "base/diag.h"
#include "fileio/read_ahead.h"
#include "merge/merge.h"
#include "perfdata/reader.h"

#include <cjson/cJSON.h>
#include <sys/types.h>

struct fr_input {
	char *path;
	struct fr_reader *reader;
	struct fr_read_ahead *ahead; /* that the reader reads through, or NULL */
	struct fr_session head; /* of all of the file, also where the reader is not there yet (pipe format) */
	cJSON *meta;		/* the JSON beside it, or NULL */
	dev_t dev;
	ino_t ino;
	uint64_t size;
	gid_t gid;
	bool found;	   /* in the directory, and not named by the caller */
	bool live;	   /* a daemon holds it */
	bool has_jit;	   /* objects beside it, see jit.h */
	bool head_damaged; /* its events are not what the other inputs say */
	bool damaged;	   /* known at the end */
	/* Boot: */
	char boot_id[33]; /* or empty */
	bool has_clock;
	uint64_t clock_ns;	 /* CLOCK_DATA: the events' clock … */
	int64_t clock_offset_ns; /* … and what wall time was ahead of it */
	/* Pipe format: what it tells of without a gap. 0 and 0: nothing. */
	uint64_t known_from, known_to;
};

struct fr_inputs {
	struct fr_input *v;
	size_t n;
	size_t n_unusable;
	uint64_t bytes;
};

/* Print a line through the options' warn(), if there is one. */
void fr_merge_warn(const struct fr_merge_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Find, open and look over all that OPTIONS name; what is no perf.data is warned of and left out. Auxiliary
   files come first, sample files in the order of their names. 0, -ENOENT, -EBADMSG (nothing usable), or a
   negative errno, with D. RET is to be freed by the caller, also after failure. */
int fr_inputs_open(const struct fr_merge_options *options, struct fr_inputs *ret, struct fr_diag *d);
/* Have their blocks read while others are worked on. Memory is bounded for all of them together. 0 or
 * -ENOMEM.
 */
int fr_inputs_read_ahead(struct fr_inputs *in);

void fr_inputs_deinit(struct fr_inputs *in);

/* boot.c: 0, or -EXDEV with both boots and a file of each in D. */
int fr_inputs_check_boot(const struct fr_inputs *in, struct fr_diag *d);
/* Fill boot_id and the clock of an input. */
void fr_input_read_boot(struct fr_input *in);

/* sidecar.c: the JSON beside PATH, or NULL. */
cJSON *fr_sidecar_read(const char *path);
/* The JSON of the output NAME, as a dump has it, with that of each input in "dumps". NULL: out of memory. The
   caller frees it. */
char *fr_sidecar_unite(
	const struct fr_inputs *in, const struct fr_merge_report *report, const char *name, bool compressed);
