/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in dump/ only: collects build-ids for the map records of a dump. Each path in these map records gets
   at most one build-id. See docs/design/98. */

#include "dump/params.h"

struct fr_build_ids;

/* PARAMS is borrowed. If vdso_kept is true, the build-id of the vdso is collected, too. It is true only if a
   build-id cache has a copy of the vdso, because perf looks for a vdso with a build-id only in build-id
   caches. For a vdso without a build-id, perf uses the vdso of the running kernel. Returns 0 or -ENOMEM. */
int fr_build_ids_new(const struct fr_dump_params *params, struct fr_build_ids **ret);
struct fr_build_ids *fr_build_ids_free(struct fr_build_ids *b);

/* Adds the new build-ids of RECORDS to the feature BUILD_ID of S. RECORDS are whole records in the common
   layout (perfdata/record.h). The function stops at bytes that are not a whole record. Build-ids come from
   MMAP2 records, from mapped files, from the vdso, and for the kernel from /sys/kernel/notes and /sys/module,
   or from kernel_build_ids. early_ids finds or reads the build-ids of mapped files. In a dump, a path can
   name only one file: the file that has the path now. For each executable map of another file that had this
   path, RET_FOLLOW (may be NULL) gets a copy of the map record with a name that no file has. The caller
   writes RET_FOLLOW to the dump after RECORDS. Returns 0 or -ENOMEM. */
int fr_build_ids_collect(struct fr_build_ids *b, struct fr_session *s, const void *records, size_t len,
	struct fr_buf *ret_follow);
