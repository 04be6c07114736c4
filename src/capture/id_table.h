/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Maps the kernel's event ids to small numbers: open addressing, filled once, then only read. */

#include <stddef.h>
#include <stdint.h>

#define FR_ID_UNKNOWN UINT32_MAX

struct fr_id_entry {
	uint64_t id; /* 0: free; the kernel's ids begin at 1 */
	uint32_t slot;
};

struct fr_id_table {
	struct fr_id_entry *entries;
	uint64_t mask;
};

/* Make room for N ids. Returns 0 or -ENOMEM. */
int fr_id_table_init(struct fr_id_table *t, size_t n);
void fr_id_table_deinit(struct fr_id_table *t);
void fr_id_table_add(struct fr_id_table *t, uint64_t id, uint32_t slot);

/* The ids of one recorder are almost consecutive, so an id is its own hash. */
static inline uint32_t fr_id_table_find(const struct fr_id_table *t, uint64_t id)
{
	for (uint64_t i = id & t->mask; t->entries[i].id; i = (i + 1) & t->mask)
		if (t->entries[i].id == id)
			return t->entries[i].slot;
	return FR_ID_UNKNOWN;
}
