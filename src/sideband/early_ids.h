/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Build-ids of mapped files, for map records that have no build-id (KernelBuildIDs= in flightrecd.conf(5)).
 * The side-band tracker (tracker.h) reads the build-id of the file when it gets the map record, at most about
 * a second after the process has mapped the file. A dump finds the build-id here, even if the process has
 * exited, or the file was replaced or changed in place. The number of files whose build-ids are here is
 * bounded: a new file replaces the oldest file. Any thread may call these functions.
 */

#include "perfdata/record.h"
#include "sideband/buildid.h"

#include <stddef.h>

struct fr_early_ids;

/* Returns NULL if there is no memory. */
struct fr_early_ids *fr_early_ids_new(void);
struct fr_early_ids *fr_early_ids_free(struct fr_early_ids *e);

/* RECORDS are whole records in the common layout (perfdata/record.h). For each map record that has no
   build-id, reads the build-id of its file, if the map is executable. Can wait for a disk. */
void fr_early_ids_update(struct fr_early_ids *e, const void *records, size_t len);

/* Finds the build-id that the file of map M had at the time of M. If no build-id of this file is known yet
   and MAY_READ is true, reads the build-id now. This can wait for a disk. The file is opened by
   /proc/PID/map_files, which works only while the process has the map. If that fails, the file is opened by
   its name in the root directory of the process, and then by its name in our root directory. The file must
   have the inode and the generation that are in M. Returns the length of the build-id; 0: the file had no
   build-id, or the build-id of that time was dropped; -ENOENT: the build-id is not known; or another negative
   errno: the file cannot be read. */
int fr_early_ids_find(struct fr_early_ids *e, const struct fr_record_mmap2 *m, bool may_read,
	uint8_t ret[static FR_BUILD_ID_MAX]);
