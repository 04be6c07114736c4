/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A hash table from the kernel's event ids to small numbers, with open addressing. If all members are zeros,
   the table is empty. */

#include <stddef.h>
#include <stdint.h>

#define FR_ID_UNKNOWN UINT32_MAX

struct fr_id_table {
	struct fr_id_entry {
		uint64_t id; /* 0: free; the kernel's ids begin at 1 */
		uint32_t slot;
	} * entries;
	size_t n, cap; /* cap is 0 or a power of two */
};

/* Returns the index of the entry with ID, or of the free entry where ID belongs. T must have a free entry. */
static inline size_t fr_id_table_index(const struct fr_id_table *t, uint64_t id)
{
	size_t i = (size_t)((id * 0x9e3779b97f4a7c15ULL) >> 20) & (t->cap - 1);

	while (t->entries[i].id && t->entries[i].id != id)
		i = (i + 1) & (t->cap - 1);
	return i;
}

/* Returns the number of ID, or FR_ID_UNKNOWN. */
static inline uint32_t fr_id_table_find(const struct fr_id_table *t, uint64_t id)
{
	const struct fr_id_entry *e = t->cap ? &t->entries[fr_id_table_index(t, id)] : NULL;

	return e && e->id ? e->slot : FR_ID_UNKNOWN;
}

/* Gives ID the number SLOT. An id 0 is ignored. Returns 0 or -ENOMEM. */
int fr_id_table_add(struct fr_id_table *t, uint64_t id, uint32_t slot);
void fr_id_table_deinit(struct fr_id_table *t);
