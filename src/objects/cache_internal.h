/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside objects/: what is in the cache, and who has to go. */

#include "objects/cache.h"

#include <limits.h>
#include <stdbool.h>

struct object_entry {
	char id[2 * FR_OBJECT_ID_MAX + 1];
	uint64_t bytes;
	uint64_t used_ns; /* wall time */
	uid_t owner; /* of the file that it is a copy of, who may have made up its build-id; 0: nobody may */
	bool contested; /* two such owners have different files of this build-id: there is no copy */
};

struct fr_object_cache {
	struct fr_object_cache_config config;
	int fd;
	struct object_entry *entries; /* in no order */
	size_t n, cap;
	uint64_t begin_ns; /* of the dump at hand, wall time */
	struct fr_object_cache_stats stats;
};

/* Find what is there. 0 or a negative errno. */
int object_cache_scan(struct fr_object_cache *c);
/* It, which then counts as used now, or NULL. Valid until one comes or goes. */
const struct object_entry *object_cache_touch(struct fr_object_cache *c, const char *id);
int object_cache_remember(struct fr_object_cache *c, const char *id, uint64_t bytes, uid_t owner);
/* Remove it, where it is there. */
void object_cache_drop(struct fr_object_cache *c, const char *id);
/* The directory of an entry that is there; a descriptor or a negative errno. PATH (or NULL) is filled. */
int object_cache_open_entry(const struct fr_object_cache *c, const char *id, char *path);

/* In an entry's directory, empty: whose file it is, where that is not root's; and that it is contested. */
#define OBJECT_OWNER_PREFIX "owner-"
#define OBJECT_CONTESTED "contested"
/* Evict until so many bytes more fit. False where only what this dump needs would be left to go. */
bool object_cache_make_room(struct fr_object_cache *c, uint64_t bytes);

/* Through memory. 0 or a negative errno, -ESTALE where FROM is shorter. */
int object_cache_copy_slowly(int from, int to, uint64_t size);
