// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/space.h"
#include "base/cleanup.h"
#include "unwind/bisect.h"

#include <errno.h>
#include <string.h>

static size_t published_bytes(size_t n)
{
	return sizeof(struct fr_unwind_process) + n * sizeof(struct fr_unwind_map);
}

struct fr_unwind_space *fr_unwind_space_new(void)
{
	struct fr_unwind_space *s = calloc(1, sizeof(*s));

	if (s)
		s->refs = 1;
	return s;
}

struct fr_unwind_space *fr_unwind_space_copy(struct fr_unwind_objects *o, const struct fr_unwind_space *s)
{
	struct fr_unwind_space *copy = fr_unwind_space_new();

	if (!copy)
		return NULL;
	copy->cap = s->n + 8;
	copy->maps = malloc(copy->cap * sizeof(*copy->maps));
	if (!copy->maps) {
		free(copy);
		return NULL;
	}
	if (s->n)
		memcpy(copy->maps, s->maps, s->n * sizeof(*copy->maps));
	copy->n = s->n;
	for (size_t i = 0; i < copy->n; i++)
		fr_unwind_objects_ref(o, copy->maps[i].object);
	return copy;
}

void fr_unwind_space_free(struct fr_unwind_objects *o, struct fr_unwind_space *s)
{
	for (size_t i = 0; i < s->n; i++)
		fr_unwind_objects_unref(o, s->maps[i].object);
	if (s->at)
		fr_unwind_memory_give(o->memory, s->at, published_bytes(s->n));
	else
		free(s->maps);
	free(s);
}

/* Returns the index of the first map that ends after ADDRESS; s->n if there is no such map. */
static size_t find_first_behind(const struct fr_unwind_space *s, uint64_t address)
{
	return UNWIND_BISECT(i, s->n, s->maps[i].end > address);
}

static bool continues(const struct fr_unwind_map *a, const struct fr_unwind_map *b)
{
	return a->end == b->start && a->object == b->object && a->bias == b->bias;
}

/* Makes room for two more maps: the new one, and the second remainder of an old one that it splits. */
static int reserve(struct fr_unwind_space *s)
{
	const size_t cap = s->n + s->n / 4 + 8;
	struct fr_unwind_map *more;

	if (s->cap - s->n >= 2)
		return 0;
	more = realloc(s->maps, cap * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->maps = more;
	s->cap = cap;
	return 0;
}

/* Puts N maps at PUT in place of the maps FIRST to LAST - 1. Gives back the references of the latter. */
static void replace(struct fr_unwind_objects *o, struct fr_unwind_space *s, size_t first, size_t last,
	const struct fr_unwind_map *put, size_t n)
{
	for (size_t i = first; i < last; i++)
		fr_unwind_objects_unref(o, s->maps[i].object);
	memmove(&s->maps[first + n], &s->maps[last], (s->n - last) * sizeof(s->maps[0]));
	memcpy(&s->maps[first], put, n * sizeof(*put));
	s->n = s->n - (last - first) + n;
}

/* Joins the map I and the map behind it, if they are one. A JIT compiler makes many such maps. */
static void join(struct fr_unwind_objects *o, struct fr_unwind_space *s, size_t i)
{
	if (i + 1 >= s->n || !continues(&s->maps[i], &s->maps[i + 1]))
		return;
	s->maps[i].end = s->maps[i + 1].end;
	replace(o, s, i + 1, i + 2, s->maps, 0);
}

int fr_unwind_space_insert(
	struct fr_unwind_objects *o, struct fr_unwind_space *s, const struct fr_unwind_map *map)
{
	struct fr_unwind_map put[3];
	size_t n_put = 0, first, last, at;
	int r = s->n >= FR_UNWIND_MAPS_MAX - 2 ? -E2BIG : reserve(s);

	if (r < 0) {
		fr_unwind_objects_unref(o, map->object);
		return r;
	}
	first = last = find_first_behind(s, map->start);
	if (first < s->n && s->maps[first].start < map->start) {
		put[n_put] = s->maps[first];
		put[n_put].end = map->start;
		fr_unwind_objects_ref(o, put[n_put++].object);
	}
	at = first + n_put;
	put[n_put++] = *map;
	for (; last < s->n && s->maps[last].start < map->end; last++) {
		if (s->maps[last].end <= map->end)
			continue;
		put[n_put] = s->maps[last];
		put[n_put].start = map->end;
		fr_unwind_objects_ref(o, put[n_put++].object);
	}
	replace(o, s, first, last, put, n_put);
	join(o, s, at);
	if (at > 0)
		join(o, s, at - 1);
	return 0;
}

bool fr_unwind_space_is_equal(const struct fr_unwind_space *a, const struct fr_unwind_space *b)
{
	return a->n == b->n && (a->n == 0 || memcmp(a->maps, b->maps, a->n * sizeof(a->maps[0])) == 0);
}

int fr_unwind_space_publish(struct fr_unwind_memory *m, struct fr_unwind_space *s)
{
	const fr_unwind_at at = fr_unwind_memory_take(m, published_bytes(s->n));
	struct fr_unwind_process *p;

	if (!at)
		return -ENOSPC;
	p = fr_unwind_memory_address(m, at);
	p->n = (uint32_t)s->n;
	p->reserved = 0;
	if (s->n)
		memcpy(p->maps, s->maps, s->n * sizeof(p->maps[0]));
	free(s->maps);
	s->maps = p->maps;
	s->cap = s->n;
	s->at = at;
	return 0;
}
