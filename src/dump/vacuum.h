/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Removal of dumps: the oldest by the limits of retention, or those that were named. With a dump go the JSON
 * beside it and NAME.jit/, and perf.data.auxiliary.TIME of a run before goes with the last dump of that run.
 * perf.data.TIME, a merged file that was moved aside for a newer one, counts as a dump where its JSON is
 * beside it, and perf.data.jit/ goes with the last merged file. perf.data itself stays. Any thread that may
 * block on the disk; two at once do no harm.
 */

#include "base/diag.h"
#include "dump/retention.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_vacuum_report {
	char **removed; /* names of dumps, NULL-terminated or NULL */
	size_t n_removed;
	uint64_t freed_bytes;
	uint64_t files, bytes; /* what is left */
	bool fits;	       /* all limits hold now */
};
void fr_vacuum_report_deinit(struct fr_vacuum_report *r);

/* Apply LIMITS to the directory. NEED_BYTES: for a dump to come. Dumps of KEEP_FROM_NS (wall time;
   UINT64_MAX: none has to) and later stay. Where the limits cannot be kept with the dump to come, those go
   whose room it needs, and none where that would not do. RET (may be NULL) is zeroed before its first use,
   and then adds up what was removed, also on failure. 0, also where a limit cannot be kept, or a negative
   errno with D. */
int fr_vacuum(int dirfd, const struct fr_retention *limits, uint64_t need_bytes, uint64_t keep_from_ns,
	struct fr_vacuum_report *ret, struct fr_diag *d);

/* Remove the dump NAME ("perf.data.sample.TIME" or "perf.data.TIME", with or without ".json"), with what
   belongs to it. 0, and RET has it added; -EINVAL: no name of a dump; -ENOENT: there is none; with D. */
int fr_vacuum_remove(int dirfd, const char *name, struct fr_vacuum_report *ret, struct fr_diag *d);

/* Remove temporary files of dumps that a killed recorder left. Only while no other can be writing here: under
   the lock of perf.data.auxiliary, before the first dump. The number removed, or a negative errno. */
int fr_vacuum_leftovers(int dirfd);
