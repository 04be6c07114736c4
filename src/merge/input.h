/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds, opens and examines the files to merge. */

#include "base/diag.h"
#include "merge/options.h"
#include "perfdata/reader.h"

#include <cjson/cJSON.h>
#include <sys/types.h>
#include <systemd/sd-id128.h>

struct fr_input {
	char *path;
	struct fr_reader *reader;
	struct fr_session head; /* the complete head; in pipe format, `reader` gets it piece by piece */
	cJSON *meta;		/* its sidecar (NAME.json), or NULL */
	dev_t dev;
	ino_t ino;
	uint64_t size;
	gid_t gid;
	bool found;	   /* true: it was found in the directory; false: the caller named it */
	bool live;	   /* a flightrecd writes to it now */
	bool has_jit;	   /* fr_input_has_jit() */
	bool head_damaged; /* its events contradict the events of the other inputs */
	bool incomplete;   /* a part of its AUX data is not in the output */
	bool damaged;	   /* set at the end of the merge: it was not read completely, or head_damaged or
			      incomplete is true */

	sd_id128_t boot_id; /* SD_ID128_NULL if unknown */
	bool has_clock;
	uint64_t clock_ns;	 /* the time in its section CLOCK_DATA, on the clock of the events */
	int64_t clock_offset_ns; /* wall time minus the time on the clock of the events */

	/* The time that the file covers without a gap, if it has the pipe format (like perf.data.auxiliary).
	   Otherwise 0 and 0. */
	uint64_t known_from, known_to;
};

struct fr_inputs {
	struct fr_input *v;
	size_t n;
	size_t n_unusable; /* number of files that cannot be merged, for example because they are no perf.data
			      files */
	uint64_t bytes;
};

#define FR_INPUT_KALLSYMS ".kallsyms" /* FR_DUMP_KALLSYMS of dump/names.h */

/* Formats a line and passes it to the warn() of the options, if there is one. */
void fr_merge_warn(const struct fr_merge_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Finds, opens and examines the files that OPTIONS name. If a file is not a perf.data file, warns about it
   and leaves it out. Auxiliary files come first, then the other files. Each of the two groups is sorted by
   name. The caller frees RET, also after failure. Returns 0; or a negative errno, with a message in D:
   -ENOENT if there is no file, -EBADMSG if no file is usable. */
int fr_inputs_open(const struct fr_merge_options *options, struct fr_inputs *ret, struct fr_diag *d);
/* Makes the readers read ahead, within one limit of memory for all inputs together. */
void fr_inputs_read_ahead(struct fr_inputs *in);
void fr_inputs_deinit(struct fr_inputs *in);
/* Closes one input, which the caller removes from its list. */
void fr_input_deinit(struct fr_input *in);

/* In boot.c. Removes from IN the files of the directory that are of an older boot than the newest file, and
   warns about them: a crash of the machine leaves such files. */
void fr_inputs_leave_older_boots(const struct fr_merge_options *o, struct fr_inputs *in);
/* Checks that all inputs come from one boot. Returns 0; or -EXDEV, with a message in D that names
   two boots and a file of each boot. */
int fr_inputs_check_boot(const struct fr_inputs *in, struct fr_diag *d);
/* Sets boot_id, has_clock, clock_ns and clock_offset_ns of an input. */
void fr_input_read_boot(struct fr_input *in);

/* In sidecar.c. Returns the sidecar of PATH, or NULL if there is no valid sidecar. The caller frees it by
   cJSON_Delete(). */
cJSON *fr_sidecar_read(const char *path);
/* Makes the text of the sidecar of the output NAME. This sidecar has the members of the sidecar of a dump,
   and the sidecars of the inputs in the member "dumps". The caller frees *RET, which is NULL if no input has
   a sidecar. Returns 0 or -ENOMEM. */
int fr_sidecar_unite(const struct fr_inputs *in, const struct fr_merge_report *report, const char *name,
	bool compressed, char **ret);
