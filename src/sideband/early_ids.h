/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Build-ids of mapped files, for map records that have no build-id (KernelBuildIDs= in flightrecd.conf(5)).
 * The tracker reads the build-id when it gets the record, at most about a second after the map. A dump finds
 * it here, even if the process has exited, or the file was replaced or changed in place. The number of
 * build-ids is bounded: a new one replaces the oldest. Any thread.
 */

#include "perfdata/record.h"
#include "sideband/buildid.h"

#include <stddef.h>

struct fr_early_ids;

/* Returns NULL if there is no memory. */
struct fr_early_ids *fr_early_ids_new(void);
struct fr_early_ids *fr_early_ids_free(struct fr_early_ids *e);

/* RECORDS are whole records in our layout. Read the build-ids of the files that they map, for map records
   without a build-id. May wait for a disk. */
void fr_early_ids_update(struct fr_early_ids *e, const void *records, size_t len);

/* Find the build-id that the file of map M had at the time of M. If it is not known and MAY_READ is true,
   read it now, which may wait for a disk. The file is opened by the map while the process has it, else by its
   name in the root of the process, else by its name in ours. Inode and generation must be those of M. Returns
   the length; 0: the file has no build-id; -ENOENT: it is not known; or another negative errno. */
int fr_early_ids_find(struct fr_early_ids *e, const struct fr_record_mmap2 *m, bool may_read,
	uint8_t ret[static FR_BUILD_ID_MAX]);
