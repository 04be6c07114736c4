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
	uid_t owner;	  /* user who may have forged the build-id of the file; 0: no user can have done so */
	bool contested;	  /* files of two owners differ, so there is no copy */
};

struct fr_object_cache {
	struct fr_object_cache_config config;
	int fd;
	struct object_entry *entries; /* in no order */
	size_t n;
	uint64_t begin_ns; /* start of the present dump, wall time */
	struct fr_object_cache_stats stats;
};

/* Read all entries. Returns 0 or a negative errno. */
int object_cache_scan(struct fr_object_cache *c);
/* Find the entry of ID, and set the time of its last use. Returns NULL if there is no entry. The result is
   valid until an entry comes or goes. */
const struct object_entry *object_cache_touch(struct fr_object_cache *c, const char *id);
/* Add an entry whose files exist already. Returns 0 or -ENOMEM. */
int object_cache_remember(struct fr_object_cache *c, const char *id, uint64_t bytes, uid_t owner);
/* Remove the entry of ID, if there is one. */
void object_cache_drop(struct fr_object_cache *c, const char *id);
/* Open the directory of an entry. PATH (PATH_MAX bytes, or NULL) gets its path below the cache. A descriptor
   or a negative errno. */
int object_cache_open_entry(const struct fr_object_cache *c, const char *id, char *path);

/* Empty files in the directory of an entry. The first tells the owner if it is not root, the second that the
   entry is contested. */
#define OBJECT_OWNER_PREFIX "owner-"
#define OBJECT_CONTESTED "contested"
/* Evict entries until there is room for BYTES. Returns false if only entries of the present dump are
   left. */
bool object_cache_make_room(struct fr_object_cache *c, uint64_t bytes);
