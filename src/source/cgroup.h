/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Control groups of the unified hierarchy, by path and by the number that the kernel has for them. */

#include "source/cause.h"

#include <stdint.h>

/* PATH below the root of the hierarchy, with or without a slash before it: its id. -ENOENT: no such group, or
   no unified hierarchy is mounted where systemd mounts it. */
int fr_cgroup_id(const char *path, uint64_t *ret);

/* The paths of the newest ids that were asked for: an id is never used twice, so they stay true, also when
   the group is gone. Zero-initialise it; nothing to release. */
struct fr_cgroup_cache {
	struct {
		uint64_t id;
		char path[FR_CAUSE_CGROUP_SIZE];
	} entry[16];
};
/* Path of ID below the root, "/" for the root; NULL: not known (gone, or CAP_DAC_READ_SEARCH is missing).
   Borrowed until the next call. */
const char *fr_cgroup_path(struct fr_cgroup_cache *cache, uint64_t id);
