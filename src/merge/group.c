// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fr_group_entry {
	uint64_t hash;
	size_t at, size; /* in the bytes */
	size_t input;	 /* that COUNT is of */
	uint64_t count;	 /* how often it came from that input */
	uint64_t kept;	 /* how often it was written */
	uint32_t next;	 /* in its bucket, index + 1 */
};

static uint64_t hash_of(const void *p, size_t size)
{
	uint64_t h = size * 0x9e3779b97f4a7c15ULL;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word;

		memcpy(&word, (const char *)p + i, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	return h;
}

void fr_group_clear(struct fr_group *g)
{
	for (size_t i = 0; i < g->n && g->n < g->n_buckets; i++)
		g->buckets[g->entries[i].hash & (g->n_buckets - 1)] = 0;
	if (g->n >= g->n_buckets && g->n_buckets)
		memset(g->buckets, 0, g->n_buckets * sizeof(*g->buckets));
	g->n = 0;
	g->bytes.len = 0;
	g->overflow = false;
}

static int grow(struct fr_group *g)
{
	size_t cap = g->cap ? g->cap * 2 : 256;
	struct fr_group_entry *entries = reallocarray(g->entries, cap, sizeof(*entries));
	uint32_t *buckets;

	if (!entries)
		return -ENOMEM;
	g->entries = entries;
	buckets = calloc(cap, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	free(g->buckets);
	g->buckets = buckets;
	g->n_buckets = g->cap = cap;
	for (size_t i = 0; i < g->n; i++) {
		uint32_t *first = &buckets[entries[i].hash & (cap - 1)];

		entries[i].next = *first;
		*first = (uint32_t)i + 1;
	}
	return 0;
}

static struct fr_group_entry *find(
	const struct fr_group *g, uint64_t hash, const struct perf_event_header *record)
{
	uint32_t i = g->n_buckets ? g->buckets[hash & (g->n_buckets - 1)] : 0;

	for (; i; i = g->entries[i - 1].next) {
		struct fr_group_entry *e = &g->entries[i - 1];

		if (e->hash == hash && e->size == record->size &&
			memcmp(g->bytes.data + e->at, record, e->size) == 0)
			return e;
	}
	return NULL;
}

int fr_group_add(struct fr_group *g, size_t input, const struct perf_event_header *record)
{
	uint64_t hash = hash_of(record, record->size);
	struct fr_group_entry *e = find(g, hash, record);
	uint32_t *first;
	int r;

	if (e) {
		e->count = e->input == input ? e->count + 1 : 1;
		e->input = input;
		if (e->count <= e->kept)
			return 0;
		e->kept = e->count;
		return 1;
	}
	if (g->bytes.len + record->size > FR_GROUP_MAX) {
		g->overflow = true;
		return 1;
	}
	r = g->n == g->cap ? grow(g) : 0;
	if (r < 0)
		return r;
	first = &g->buckets[hash & (g->n_buckets - 1)];
	g->entries[g->n] = (struct fr_group_entry){.hash = hash,
		.at = g->bytes.len,
		.size = record->size,
		.input = input,
		.count = 1,
		.kept = 1,
		.next = *first};
	r = fr_buf_append(&g->bytes, record, record->size);
	if (r < 0)
		return r;
	*first = (uint32_t)++g->n;
	return 1;
}

void fr_group_deinit(struct fr_group *g)
{
	fr_buf_deinit(&g->bytes);
	free(g->entries);
	free(g->buckets);
	*g = (struct fr_group){0};
}
