/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Build-ids of mapped files whose map records bring none (KernelBuildIDs=): read when the record is seen,
 * about a second after the map at most. A dump finds them here when the process has exited and the file is
 * another, or was written anew in place. Bounded; the oldest go first. Any thread.
 */

#include "perfdata/record.h"
#include "sideband/buildid.h"

#include <stddef.h>

struct fr_early_ids;

struct fr_early_ids *fr_early_ids_new(void); /* NULL: no memory */
struct fr_early_ids *fr_early_ids_free(struct fr_early_ids *e);

/* Look at RECORDS, whole ones in our layout. Blocks on files. */
void fr_early_ids_update(struct fr_early_ids *e, const void *records, size_t len);

/* The build-id of the file that M maps, at the time of M: as it was seen, or read now: by the map itself
   while the process has it, else by its name in the process's view of the file system, else in ours. A file
   whose inode or generation is not the record's is another. Its length, 0: it has none, or a negative errno.
 */
int fr_early_ids_find(
	struct fr_early_ids *e, const struct fr_record_mmap2 *m, uint8_t ret[static FR_BUILD_ID_MAX]);

/* The same, but only as it was seen: -ENOENT where it was not. */
int fr_early_ids_find_known(
	struct fr_early_ids *e, const struct fr_record_mmap2 *m, uint8_t ret[static FR_BUILD_ID_MAX]);
