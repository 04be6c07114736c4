/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Recognizes the kinds of files in the recorder's directory by their names. */

#include <stddef.h>
#include <stdint.h>

#define FR_DUMP_PREFIX "perf.data.sample."
#define FR_MERGED_NAME "perf.data"
#define FR_DUMP_NAME_SIZE 64
/* Beside the dump of a kernel that has crashed: its symbols, in the format of /proc/kallsyms. */
#define FR_DUMP_KALLSYMS ".kallsyms"
/* Beside a dump that retention keeps: hold.h. */
#define FR_DUMP_HOLD ".hold"

/* Bits, so that a set of kinds fits into an unsigned. */
enum fr_name {
	FR_NAME_OTHER = 0,
	FR_NAME_DUMP = 1,	  /* perf.data.sample.TIME */
	FR_NAME_AUXILIARY = 2,	  /* perf.data.auxiliary.TIME of a recording that has ended */
	FR_NAME_MERGED = 4,	  /* perf.data, the output of flightrec-merge */
	FR_NAME_MERGED_OLDER = 8, /* perf.data.TIME: a merged file that a newer merged file has replaced */
};

/* Returns the kind of the file NAME. RET_NS (may be NULL) gets the wall time in the name, or 0 if the name
   has no time. */
enum fr_name fr_name_kind(const char *name, uint64_t *ret_ns);

/* Writes "perf.data.sample.TIME" for the wall time REALTIME_NS into RET. */
void fr_dump_name(uint64_t realtime_ns, char ret[static FR_DUMP_NAME_SIZE]);

struct fr_named_file {
	char name[FR_DUMP_NAME_SIZE];
	enum fr_name kind;
	uint64_t time_ns; /* wall time in the name; for perf.data, its modification time */
};

/* Lists the files of DIRFD whose kind is in KINDS, oldest first. The caller frees *RET. The function can wait
   for a disk. Returns 0 or a negative errno. */
int fr_names_list(int dirfd, unsigned kinds, struct fr_named_file **ret, size_t *ret_n);
