/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Decides which dumps have to be removed. MaxUse= and KeepFree= of flightrecd.conf(5) mean the same as in
 * coredump.conf(5). The functions get a list of dumps and numbers about the disk. vacuum.c makes the list,
 * and removes the files. See docs/design/51.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_RETENTION_DEFAULT UINT64_MAX /* a percentage of the file system: see fr_retention_resolve() */
#define FR_RETENTION_CAP (4ULL << 30)

struct fr_retention {
	uint64_t max_use; /* most bytes of the recorder's files; 0: no limit; or FR_RETENTION_DEFAULT */
	uint64_t
		keep_free; /* bytes of the file system that stay free; 0: no limit; or FR_RETENTION_DEFAULT */
	uint64_t max_files;  /* largest number of dumps; 0: no limit */
	uint64_t max_age_ns; /* largest age of a dump; 0: no limit */
};

/* A dump with its sidecar and its other files. */
struct fr_retention_file {
	uint64_t time_ns; /* wall time of its trigger */
	uint64_t bytes;	  /* space on the disk */
	bool keep;	  /* the dump has to stay, because it is new */
	bool held;	  /* the dump stays (hold.h), unless the disk has no room */
	bool remove;	  /* the decision of fr_retention_choose() */
};

struct fr_retention_disk {
	uint64_t size, free; /* size: bytes of the file system; free: its free bytes */
	uint64_t other;	     /* bytes of the recorder's files that are not dumps; they count for MaxUse= */
	uint64_t need;	     /* bytes of a dump that is about to be written; 0: no dump */
	uint64_t now_ns;     /* wall time */
};

/* Returns a copy of R. Where R has FR_RETENTION_DEFAULT, the copy has a percentage of the file system: 10 %
   for MaxUse=, and 15 % for KeepFree=, each at most FR_RETENTION_CAP. */
struct fr_retention fr_retention_resolve(const struct fr_retention *r, uint64_t disk_size);

/* A held dump is removed only if, without that, KeepFree= would not hold or a new dump would not fit; the
   dumps that are not held go first. */
/* Sets `remove` in each of the N FILES (oldest first): true if the dump has to be removed because of the
   limits R. R is a result of fr_retention_resolve(). Returns whether, after these removals, all limits hold
   and the dump that is about to be written fits. */
bool fr_retention_choose(const struct fr_retention *r, const struct fr_retention_disk *disk,
	struct fr_retention_file *files, size_t n);
