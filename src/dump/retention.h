/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How much of the disk dumps may hold, in the terms of coredump.conf(5). What goes is decided here, from a
 * list and two numbers; vacuum.h makes the list and removes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_RETENTION_DEFAULT UINT64_MAX /* a part of the file system, see fr_retention_resolve() */
#define FR_RETENTION_CAP (4ULL << 30)

struct fr_retention {
	uint64_t max_use;    /* bytes of all dumps together; 0: no limit; or FR_RETENTION_DEFAULT */
	uint64_t keep_free;  /* bytes of the file system; 0: none; or FR_RETENTION_DEFAULT */
	uint64_t max_files;  /* dumps; 0: no limit */
	uint64_t max_age_ns; /* 0: no limit */
};

/* One dump with all that belongs to it. */
struct fr_retention_file {
	uint64_t time_ns; /* wall time of its trigger */
	uint64_t bytes;	  /* on the disk */
	bool keep;	  /* never goes: it was just written */
	bool remove;	  /* the answer */
};

struct fr_retention_disk {
	uint64_t size, free; /* of the file system, in bytes */
	uint64_t other;	     /* of the recorder's bytes there: what is no dump, and does not go */
	uint64_t need;	     /* for a dump that is about to be written; 0: none */
	uint64_t now_ns;     /* wall time */
};

/* The defaults put in: MaxUse= 10 %, KeepFree= 15 % of the file system, each at most FR_RETENTION_CAP. */
struct fr_retention fr_retention_resolve(const struct fr_retention *r, uint64_t disk_size);

/* Set `remove` of those of the N FILES, oldest first, that have to go for the limits R (resolved), and clear
   it of the others. True: with them gone all limits hold, and what is needed fits. */
bool fr_retention_choose(const struct fr_retention *r, const struct fr_retention_disk *disk,
	struct fr_retention_file *files, size_t n);
