/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Converts between paths and ids of control groups of version 2. */

#include "source/cause.h"

#include <stdint.h>

/* Reads the id of the group at PATH. PATH begins at the root of the hierarchy, with or without a leading
   slash. Returns 0; -ENOENT if there is no group at PATH, or if cgroup2 is not mounted where systemd mounts
   it; or another negative errno. */
int fr_cgroup_id(const char *path, uint64_t *ret);

/* A cache of the paths of groups. The kernel does not reuse the ids of groups, so an entry stays correct
   after its group has gone. Initialise the cache with zeros; it owns no memory. */
struct fr_cgroup_cache {
	struct {
		uint64_t id;
		char path[FR_CAUSE_CGROUP_SIZE];
	} entry[16];
};
/* Returns the path of group ID below the root ("/" for the root itself). The string is valid until the next
   call with CACHE. Returns NULL if ID is 0; or if the path is not in CACHE, and the group has gone or
   CAP_DAC_READ_SEARCH is missing. */
const char *fr_cgroup_path(struct fr_cgroup_cache *cache, uint64_t id);
