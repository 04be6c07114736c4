/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The maps of one address space: sorted by address, never overlapping. A new map takes the place of whatever
 * it covers, as mmap(MAP_FIXED), mprotect and dlopen after dlclose do; what sticks out on either side stays.
 *
 * A fork shares its parent's array until one of the two changes it, so that fork + exec copies nothing.
 * The arrays' bytes are in the pool's account. Not thread-safe.
 */

#include "sideband/blob.h"

#include <stdbool.h>

struct fr_map {
	uint64_t start, end; /* end is behind the last byte */
	uint64_t pgoff;
	struct fr_blob *backing; /* a reference: owner's key, see model.c */
	uint32_t prot, flags;
};

struct fr_maps {
	uint32_t refs;
	size_t n, cap;
	struct fr_map v[];
};

/* Maps are NULL where there are none. */
struct fr_maps *fr_maps_ref(struct fr_maps *m);
struct fr_maps *fr_maps_unref(struct fr_maps *m, struct fr_blob_pool *pool); /* NULL-safe; returns NULL */

/* Put MAP in; its reference on the backing goes over to the maps, also on failure. 0 or -ENOMEM, which leaves
   the maps as they were. */
int fr_maps_insert(struct fr_maps **m, struct fr_blob_pool *pool, const struct fr_map *map);

/* Take out every map that touches START … END (END is behind the last byte), whole. 0 or -ENOMEM. */
int fr_maps_remove(struct fr_maps **m, struct fr_blob_pool *pool, uint64_t start, uint64_t end);
