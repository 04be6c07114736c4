/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside dump/: the build-ids of what a dump's maps name, each path once. */

#include "perfdata/session.h"
#include "sideband/early_ids.h"

#include <stdbool.h>

struct fr_build_ids;

/* VDSO: with that of the vdso. perf looks for an object that has an id in build-id caches alone, and for a
   vdso without one it takes that of the kernel it runs on, as nobody has it in a file. EARLY as in struct
   fr_dump_params. 0 or -ENOMEM. */
int fr_build_ids_new(bool vdso, struct fr_early_ids *early, struct fr_build_ids **ret);
struct fr_build_ids *fr_build_ids_free(struct fr_build_ids *b);
static inline void fr_build_idsp(struct fr_build_ids **b)
{
	fr_build_ids_free(*b);
}
#define _cleanup_build_ids_ _cleanup_(fr_build_idsp)

/* Add to S's BUILD_ID what is new in RECORDS, whole records in our layout, up to the first that is not: files
   whose MMAP2 has a build-id, or that can still be read (a process that lives may be in a container: its own
   view of the file system counts), the vdso, and for kernel maps what /sys/kernel/notes and /sys/module tell.
   RET_FOLLOW (or NULL) gets the map records that have to stand behind RECORDS: where a reader would open a
   file that has taken the name of the one that was mapped, the map again under a name that nothing has. 0 or
   -ENOMEM. */
int fr_build_ids_collect(struct fr_build_ids *b, struct fr_session *s, const void *records, size_t len,
	struct fr_buf *ret_follow);
