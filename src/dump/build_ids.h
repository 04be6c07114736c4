/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside dump/: the build-ids of the files that the maps of a dump name, each path once. docs/design/98. */

#include "perfdata/session.h"
#include "sideband/early_ids.h"

#include <stdbool.h>

struct fr_build_ids;

/* VDSO: collect the build-id of the vdso, too. perf looks for an object with a build-id only in build-id
   caches. For a vdso without a build-id it takes the vdso of the running kernel. EARLY: as in struct
   fr_dump_params. Returns 0 or -ENOMEM. */
int fr_build_ids_new(bool vdso, struct fr_early_ids *early, struct fr_build_ids **ret);
struct fr_build_ids *fr_build_ids_free(struct fr_build_ids *b);

/* Add the new build-ids of RECORDS to the feature BUILD_ID of S. RECORDS are whole records in our layout;
   reading ends at the first record in another layout. Build-ids come from MMAP2 records, from files that can
   still be read (through the process's own view of the file system while it lives), from the vdso, and for
   the kernel's maps from /sys/kernel/notes and /sys/module. RET_FOLLOW (or NULL) gets map records that have
   to follow RECORDS: a map whose path has another file now, under a name that no file has. Returns 0 or
   -ENOMEM. */
int fr_build_ids_collect(struct fr_build_ids *b, struct fr_session *s, const void *records, size_t len,
	struct fr_buf *ret_follow);
