/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Build-ids of mapped files whose map records carry none (KernelBuildIDs=). The tracker reads them when it
 * gets the record, at most about a second after the map. A dump finds them here after the process has exited
 * and the file was replaced or changed in place. Bounded; the oldest go first. Any thread.
 */

#include "perfdata/record.h"
#include "sideband/buildid.h"

#include <stddef.h>

struct fr_early_ids;

struct fr_early_ids *fr_early_ids_new(void); /* NULL: no memory */
struct fr_early_ids *fr_early_ids_free(struct fr_early_ids *e);

/* Read the build-ids of the files that RECORDS map; whole records in our layout. May wait for a disk. */
void fr_early_ids_update(struct fr_early_ids *e, const void *records, size_t len);

/* The build-id that the file of map M had at the time of M. If it is not known, it is read now: by the map
   while the process has it, else by the file's name in the process's root, else by its name in ours. The
   inode and the generation must be those of M. Returns the length; 0: the file has none; or a negative
   errno. May wait for a disk. */
int fr_early_ids_find(
	struct fr_early_ids *e, const struct fr_record_mmap2 *m, uint8_t ret[static FR_BUILD_ID_MAX]);

/* The same without reading a file: -ENOENT if the build-id is not known. */
int fr_early_ids_find_known(
	struct fr_early_ids *e, const struct fr_record_mmap2 *m, uint8_t ret[static FR_BUILD_ID_MAX]);
