/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The maps of one address space, sorted by address, without overlaps. A new map replaces the old maps that it
 * covers, as mmap(MAP_FIXED) does. If the new map covers only a part of an old map, the rest of the old map
 * stays.
 *
 * At a fork, the child process shares the array of maps with its parent. The array is copied when the maps of
 * the child or of the parent change. So a fork() with an exec() after it copies nothing. The pool counts the
 * bytes of the arrays. Not thread-safe.
 */

#include "sideband/blob.h"

struct fr_map {
	uint64_t start, end; /* end: the address after the last byte */
	uint64_t pgoff;
	struct fr_blob *backing; /* a reference to a struct model_backing */
	uint32_t prot, flags;
};

struct fr_maps {
	uint32_t refs;
	size_t n, cap;
	struct fr_map v[];
};

/* A NULL pointer is an address space without maps. */
struct fr_maps *fr_maps_ref(struct fr_maps *m);
struct fr_maps *fr_maps_unref(struct fr_maps *m, struct fr_blob_pool *pool); /* NULL-safe; returns NULL */

/* Inserts MAP. The function takes over the caller's reference to map->backing, even if it fails. Returns 0 or
   -ENOMEM. On failure, the maps do not change. */
int fr_maps_insert(struct fr_maps **m, struct fr_blob_pool *pool, const struct fr_map *map);

/* Removes every map that overlaps START … END, even a map of which only a part is inside. END is the address
   after the last byte. Returns 0 or -ENOMEM. On failure, the maps do not change. */
int fr_maps_remove(struct fr_maps **m, struct fr_blob_pool *pool, uint64_t start, uint64_t end);
/* Returns the map that contains ADDR, or NULL. M may be NULL. */
const struct fr_map *fr_maps_find(const struct fr_maps *m, uint64_t addr);
