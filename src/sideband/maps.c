// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/maps.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t bytes_for(size_t cap)
{
	return sizeof(struct fr_maps) + cap * sizeof(struct fr_map);
}

struct fr_maps *fr_maps_ref(struct fr_maps *m)
{
	if (m)
		m->refs++;
	return m;
}

struct fr_maps *fr_maps_unref(struct fr_maps *m, struct fr_blob_pool *pool)
{
	if (!m || --m->refs > 0)
		return NULL;
	for (size_t i = 0; i < m->n; i++)
		fr_blob_unref(pool, m->v[i].backing);
	pool->bytes -= bytes_for(m->cap);
	free(m);
	return NULL;
}

/* Returns an array with the maps of OLD. No other process shares this array, and it has room for two more
   maps. The array is OLD itself, a larger OLD, or a copy. An insert adds at most two maps: the new map, and
   the second remainder if the new map splits an old one. (The first remainder takes the place of the old
   map.) Returns NULL if there is no memory, or the pool is full. */
static struct fr_maps *make_private(struct fr_maps *old, struct fr_blob_pool *pool)
{
	size_t n = old ? old->n : 0;
	size_t cap = old ? old->cap : 0;
	bool shared = old && old->refs > 1;
	size_t old_size = old && !shared ? bytes_for(cap) : 0;
	struct fr_maps *m;

	if (old && !shared && cap - n >= 2)
		return old;
	cap = FR_MAX(n + n / 4 + 2, (size_t)6);
	if (pool->bytes + bytes_for(cap) - old_size > pool->bytes_max)
		return NULL;
	m = shared ? malloc(bytes_for(cap)) : realloc(old, bytes_for(cap));
	if (!m)
		return NULL;
	pool->bytes += bytes_for(cap) - old_size;
	if (shared) {
		memcpy(m->v, old->v, n * sizeof(m->v[0]));
		for (size_t i = 0; i < n; i++)
			fr_blob_ref(m->v[i].backing);
		old->refs--;
	}
	m->refs = 1;
	m->n = n;
	m->cap = cap;
	return m;
}

/* Returns the index of the first map that ends after ADDR; m->n if there is no such map. */
static size_t find_first_behind(const struct fr_maps *m, uint64_t addr)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->v[mid].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

int fr_maps_insert(struct fr_maps **maps, struct fr_blob_pool *pool, const struct fr_map *map)
{
	struct fr_maps *m = make_private(*maps, pool);
	struct fr_map put[3];
	size_t n_put = 0, first, last;

	if (!m) {
		fr_blob_unref(pool, map->backing);
		return -ENOMEM;
	}
	*maps = m;
	first = last = find_first_behind(m, map->start);
	if (first < m->n && m->v[first].start < map->start) {
		put[n_put] = m->v[first];
		put[n_put].end = map->start;
		fr_blob_ref(put[n_put++].backing);
	}
	put[n_put++] = *map;
	for (; last < m->n && m->v[last].start < map->end; last++) {
		if (m->v[last].end > map->end) {
			put[n_put] = m->v[last];
			put[n_put].pgoff += map->end - m->v[last].start;
			put[n_put].start = map->end;
			fr_blob_ref(put[n_put++].backing);
		}
		fr_blob_unref(pool, m->v[last].backing);
	}
	memmove(&m->v[first + n_put], &m->v[last], (m->n - last) * sizeof(m->v[0]));
	memcpy(&m->v[first], put, n_put * sizeof(m->v[0]));
	m->n = m->n - (last - first) + n_put;
	return 0;
}

int fr_maps_remove(struct fr_maps **maps, struct fr_blob_pool *pool, uint64_t start, uint64_t end)
{
	struct fr_maps *m;
	size_t first, last;

	if (!*maps)
		return 0;
	m = make_private(*maps, pool);
	if (!m)
		return -ENOMEM;
	*maps = m;
	first = last = find_first_behind(m, start);
	for (; last < m->n && m->v[last].start < end; last++)
		fr_blob_unref(pool, m->v[last].backing);
	memmove(&m->v[first], &m->v[last], (m->n - last) * sizeof(m->v[0]));
	m->n -= last - first;
	return 0;
}

const struct fr_map *fr_maps_find(const struct fr_maps *m, uint64_t addr)
{
	size_t i = m ? find_first_behind(m, addr) : 0;

	return m && i < m->n && m->v[i].start <= addr ? &m->v[i] : NULL;
}
