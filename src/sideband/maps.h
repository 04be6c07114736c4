/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The maps of one address space, sorted by address, without overlaps. A new map replaces what it covers, as
 * mmap(MAP_FIXED) does; the rest of a map that it covers in part stays.
 *
 * A fork shares its parent's array until one of the two changes it, so fork + exec copies nothing. The pool
 * counts the bytes of the arrays. Not thread-safe.
 */

#include "sideband/blob.h"

#include <stdbool.h>

struct fr_map {
	uint64_t start, end; /* end is behind the last byte */
	uint64_t pgoff;
	struct fr_blob *backing; /* a reference; struct model_backing */
	uint32_t prot, flags;
};

struct fr_maps {
	uint32_t refs;
	size_t n, cap;
	struct fr_map v[];
};

/* NULL stands for no maps. */
struct fr_maps *fr_maps_ref(struct fr_maps *m);
struct fr_maps *fr_maps_unref(struct fr_maps *m, struct fr_blob_pool *pool); /* NULL-safe; returns NULL */

/* Insert MAP. The function takes over its reference to the backing, also on failure. 0, or -ENOMEM and the
   maps are as before. */
int fr_maps_insert(struct fr_maps **m, struct fr_blob_pool *pool, const struct fr_map *map);

/* Remove every map that overlaps START … END (END is behind the last byte) as a whole. 0 or -ENOMEM. */
int fr_maps_remove(struct fr_maps **m, struct fr_blob_pool *pool, uint64_t start, uint64_t end);
