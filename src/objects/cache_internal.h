/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to objects/: the entries of the cache, and their eviction. */

#include "objects/cache.h"

#include <limits.h>
#include <stdbool.h>

struct object_entry {
	char id[2 * FR_OBJECT_ID_MAX + 1];
	uint64_t bytes;
	uint64_t used_ns; /* wall time */
	uid_t owner;	  /* of the file; this user may have forged its build-id. 0: nobody can have */
	bool contested;	  /* files of two such owners differ, so there is no copy */
};

struct fr_object_cache {
	struct fr_object_cache_config config;
	int fd;
	struct object_entry *entries; /* in no order */
	size_t n;
	uint64_t begin_ns; /* of the present dump, wall time */
	struct fr_object_cache_stats stats;
};

/* Read all entries. 0 or a negative errno. */
int object_cache_scan(struct fr_object_cache *c);
/* The entry of ID, used now; NULL: there is none. Valid until an entry comes or goes. */
const struct object_entry *object_cache_touch(struct fr_object_cache *c, const char *id);
/* Add an entry for files that exist. 0 or -ENOMEM. */
int object_cache_remember(struct fr_object_cache *c, const char *id, uint64_t bytes, uid_t owner);
/* Remove the entry of ID, if there is one. */
void object_cache_drop(struct fr_object_cache *c, const char *id);
/* Open the directory of an entry. PATH (PATH_MAX bytes, or NULL) gets its path below the cache. A descriptor
   or a negative errno. */
int object_cache_open_entry(const struct fr_object_cache *c, const char *id, char *path);

/* Empty files in the directory of an entry: its owner, if that is not root; and that it is contested. */
#define OBJECT_OWNER_PREFIX "owner-"
#define OBJECT_CONTESTED "contested"
/* Evict until BYTES more fit. False: that would evict an entry of the present dump. */
bool object_cache_make_room(struct fr_object_cache *c, uint64_t bytes);
