/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Names for code that processes make as they run, kept with a dump.
 *
 *   side-band of the dump ──► a process with executable memory that no file is behind
 *        its /tmp/perf-PID.map, or the jitdump that it has mapped ──► ELF objects in NAME.jit/
 *        ◄── MMAP2 records that put these objects where that memory is
 *
 * What is in the files of a process is read when its first such record is seen, so while it lives; a reader
 * of the dump needs neither the process nor its files. All of it is hostile input: bounded in files, bytes,
 * functions, records and time. Not thread-safe; blocks on files.
 */

#include "base/buf.h"
#include "jit/open_files.h"

#include <stdint.h>
#include <sys/types.h>

struct fr_jit;

struct fr_jit_config {
	int dirfd;	       /* of the dump; borrowed */
	const char *directory; /* its absolute path, which stands in the records; copied */
	const char *name;      /* of the directory of objects in it, made when the first is written; copied */
	struct fr_jit_open_files *held; /* perf maps of processes that exited; borrowed, or NULL */
	gid_t gid;			/* of the objects, (gid_t)-1: leave */
};

int fr_jit_new(const struct fr_jit_config *config, struct fr_jit **ret); /* 0 or -ENOMEM */
struct fr_jit *fr_jit_free(struct fr_jit *j);

/* Look at RECORDS, whole ones in our layout, and append to RET what has to stand behind them: an MMAP2 for
   each executable map of a process whose code is known, with the time of that map. 0 or -ENOMEM. What cannot
   be read or written is left out. */
int fr_jit_append_maps(struct fr_jit *j, const void *records, size_t len, struct fr_buf *ret);

/* Append an MMAP2 for each function that a jitdump tells of and that was not handed out, of times up to
   UNTIL_NS. 0 or -ENOMEM. */
int fr_jit_append_functions(struct fr_jit *j, uint64_t until_ns, struct fr_buf *ret);

struct fr_jit_stats {
	uint64_t objects, functions, bytes;
	uint64_t truncated; /* files of which not all was taken; those that a bound left out count as one */
};
/* The objects' directory is synced. 0 or a negative errno. RET may be NULL. */
int fr_jit_finish(struct fr_jit *j, struct fr_jit_stats *ret);
/* Remove what was written. */
void fr_jit_discard(struct fr_jit *j);
