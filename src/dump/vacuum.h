/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Removal of dumps: the oldest ones by the limits of retention, or dumps by name. docs/design/51 lists what
 * belongs to a dump and goes with it. All functions wait for a disk, and run on any thread that may. Two of
 * them may run at the same time.
 */

#include "base/diag.h"
#include "dump/retention.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_vacuum_report {
	char **removed; /* names of dumps; ended by NULL, or NULL itself */
	size_t n_removed;
	uint64_t freed_bytes;
	uint64_t files, bytes; /* of the dumps that remain */
	bool fits;	       /* all limits hold now */
};
void fr_vacuum_report_deinit(struct fr_vacuum_report *r);

/* Apply LIMITS to the directory DIRFD. NEED_BYTES is the size of a dump that is about to be written, or 0.
   Dumps of the wall time KEEP_FROM_NS and later stay (UINT64_MAX: no dump has to stay). If the limits cannot
   hold, dumps go only as far as the new dump needs their room, and no dump goes if even that is too little.
   The caller zeroes RET (may be NULL) before its first use; each call adds to `removed` and `freed_bytes`,
   also on failure. Returns 0, also if a limit cannot hold, or a negative errno with D. */
int fr_vacuum(int dirfd, const struct fr_retention *limits, uint64_t need_bytes, uint64_t keep_from_ns,
	struct fr_vacuum_report *ret, struct fr_diag *d);

/* Remove the dump NAME, with what belongs to it, and add it to RET. NAME is "perf.data.sample.TIME" or
   "perf.data.TIME", also with ".json" behind. Returns 0; -EINVAL: this is not the name of a dump; -ENOENT:
   there is no such dump; or another negative errno; with D. */
int fr_vacuum_remove(int dirfd, const char *name, struct fr_vacuum_report *ret, struct fr_diag *d);

/* Remove what a killed recorder left: temporary files, and a JSON or a directory without its dump. Call it
   before the first dump, under the lock of perf.data.auxiliary, so that no other recorder writes here.
   Returns how many temporary files are gone, or a negative errno. */
int fr_vacuum_leftovers(int dirfd);
