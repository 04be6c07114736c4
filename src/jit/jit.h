/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps the names of run-time code (code that a JIT compiler makes) in files beside a dump. The side-band of
 * a dump (its records that are not samples) shows which processes make code:
 *
 *   side-band of the dump ──► a process with executable memory without a file
 *        its /tmp/perf-PID.map, or the jitdump that it has mapped ──► ELF objects in NAME.jit/
 *        ◄── MMAP2 records that place these objects in that memory
 *
 * The perf map of a process is read at the first record of such memory, and a jitdump at the record that maps
 * the jitdump. After that, a reader of the dump needs neither the process nor its perf map or jitdump. Perf
 * maps and jitdumps are hostile input, so the time and the numbers of files, bytes, functions and records are
 * bounded (docs/design/41). Not thread-safe; can wait for a disk.
 */

#include "base/buf.h"
#include "jit/open_files.h"

#include <stdint.h>
#include <sys/types.h>

struct fr_jit;

struct fr_jit_config {
	int dirfd;	       /* directory of the dump; borrowed */
	const char *directory; /* absolute path of dirfd, for the records; copied */
	const char *name;      /* name of the directory of objects, which the first object creates; copied */
	struct fr_jit_open_files *open_files; /* perf maps of processes that have exited; borrowed, or NULL */
	gid_t gid;			      /* group of the objects; (gid_t)-1: do not change it */
};

/* Returns 0 or -ENOMEM. */
int fr_jit_new(const struct fr_jit_config *config, struct fr_jit **ret);
struct fr_jit *fr_jit_free(struct fr_jit *j);

/* In the functions below, J may be NULL: there is no run-time code. */

/* RECORDS are whole records in the common layout (perfdata/record.h). Appends to RET the records that must
   follow RECORDS: for each executable map whose run-time code is known, MMAP2s of this code with the time of
   the map. If code cannot be read, or its object cannot be written, the code is left out. Returns 0 or
   -ENOMEM. */
int fr_jit_append_maps(struct fr_jit *j, const void *records, size_t len, struct fr_buf *ret);

/* Appends to RET an MMAP2 for each function of a jitdump whose time is UNTIL_NS or earlier, unless an earlier
   call has appended it. Returns 0 or -ENOMEM. */
int fr_jit_append_functions(struct fr_jit *j, uint64_t until_ns, struct fr_buf *ret);

struct fr_jit_stats {
	uint64_t objects, functions, bytes;
	uint64_t truncated; /* files that were not read as a whole, or have no object because of an error.
			       All files that were left out because of a bound count as one */
};
/* Syncs the directory of objects, and sets RET (may be NULL). Returns 0 or a negative errno. */
int fr_jit_finish(struct fr_jit *j, struct fr_jit_stats *ret);
/* Removes all objects. */
void fr_jit_discard(struct fr_jit *j);
