/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Converts between paths and ids of control groups of version 2. */

#include "source/cause.h"

#include <stdint.h>

/* The id of PATH, below the root of the hierarchy, with or without a leading slash. 0, or -ENOENT: there is
   no such group, or no cgroup2 is mounted in systemd's place. */
int fr_cgroup_id(const char *path, uint64_t *ret);

/* The paths of the last ids that were looked up. The kernel does not reuse ids, so a path stays valid after
   its group has gone. Zero-initialise it; there is nothing to free. */
struct fr_cgroup_cache {
	struct {
		uint64_t id;
		char path[FR_CAUSE_CGROUP_SIZE];
	} entry[16];
};
/* The path of ID below the root, "/" for the root, borrowed until the next call. NULL: the group has gone, or
   CAP_DAC_READ_SEARCH is missing. */
const char *fr_cgroup_path(struct fr_cgroup_cache *cache, uint64_t id);
