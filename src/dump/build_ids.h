/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in dump/ only: collects the build-ids of the files that the map records of a dump name, each path
   once. See docs/design/98. */

#include "perfdata/session.h"
#include "sideband/early_ids.h"

#include <stdbool.h>

struct fr_build_ids;

/* VDSO: collect the build-id of the vdso, too. Pass true only if a build-id cache has a copy of the vdso:
   perf looks for a vdso with a build-id in build-id caches only. For a vdso without a build-id, perf takes
   the vdso of the running kernel. EARLY: early_ids of struct fr_dump_params. Returns 0 or -ENOMEM. */
int fr_build_ids_new(bool vdso, struct fr_early_ids *early, struct fr_build_ids **ret);
struct fr_build_ids *fr_build_ids_free(struct fr_build_ids *b);

/* Add the new build-ids of RECORDS to the feature BUILD_ID of S. RECORDS are whole records in the layout of
   the recorder (perfdata/record.h); the function stops at any other record. Build-ids come from MMAP2
   records, from mapped files, from the vdso, and for the kernel from /sys/kernel/notes and /sys/module. EARLY
   (see fr_build_ids_new()) finds or reads the build-ids of mapped files. If the path of an executable map
   names another file now, RET_FOLLOW (may be NULL) gets a copy of the map record with a name that no file
   has. The caller writes RET_FOLLOW to the dump after RECORDS. Returns 0 or -ENOMEM. */
int fr_build_ids_collect(struct fr_build_ids *b, struct fr_session *s, const void *records, size_t len,
	struct fr_buf *ret_follow);
