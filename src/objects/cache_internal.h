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
/* Whether it is there; it then counts as used now. */
bool object_cache_touch(struct fr_object_cache *c, const char *id);
int object_cache_remember(struct fr_object_cache *c, const char *id, uint64_t bytes);
/* Evict until so many bytes more fit. False where only what this dump needs would be left to go. */
bool object_cache_make_room(struct fr_object_cache *c, uint64_t bytes);

/* Through memory. 0 or a negative errno, -ESTALE where FROM is shorter. */
int object_cache_copy_slowly(int from, int to, uint64_t size);
