/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The entries of the cache, and their eviction. Only files of objects/ include this header. */

#include "objects/cache.h"

#include <limits.h>
#include <stdbool.h>

struct object_entry {
	char id[2 * FR_OBJECT_ID_MAX + 1];
	uint64_t bytes;
	uint64_t used_ns; /* wall time */
	uid_t owner;	/* user who may have forged the build-id of the file; 0: nobody; (uid_t)-1: unknown */
	bool contested; /* two users have different files with this id, so there is no copy */
};

struct fr_object_cache {
	struct fr_object_cache_config config;
	int fd;
	struct object_entry *entries; /* in no order */
	size_t n;
	uint64_t begin_ns; /* start of the current dump, wall time */
	struct fr_object_cache_stats stats;
};

/* Reads all entries from the directory of the cache. Returns 0 or a negative errno. */
int object_cache_scan(struct fr_object_cache *c);
/* Finds the entry of ID, and sets the time of its last use to now. Returns NULL if there is no entry, or its
   directory is gone. The result is valid until an entry is added or removed. */
const struct object_entry *object_cache_touch(struct fr_object_cache *c, const char *id);
/* Adds an entry to the list. The files of the entry exist already. Returns 0 or -ENOMEM. */
int object_cache_remember(struct fr_object_cache *c, const char *id, uint64_t bytes, uid_t owner);
/* Removes the entry of ID, if there is one. */
void object_cache_drop(struct fr_object_cache *c, const char *id);
/* Opens the directory of the entry of ID. PATH (PATH_MAX bytes, or NULL) gets its path below the cache.
   Returns a descriptor or a negative errno. */
int object_cache_open_entry(const struct fr_object_cache *c, const char *id, char *path);

/* Names of empty files in the directory of an entry. "owner-UID" exists if object_entry.owner is UID and UID
   is not 0. "contested" exists if the entry is contested. */
#define OBJECT_OWNER_PREFIX "owner-"
#define OBJECT_CONTESTED "contested"
/* Evicts the least recently used entries until there is room for one more entry of BYTES. Entries that the
   current dump uses are not evicted. Returns false if the other entries do not make enough room. */
bool object_cache_make_room(struct fr_object_cache *c, uint64_t bytes);
