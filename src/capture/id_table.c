// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/id_table.h"

#include <errno.h>
#include <stdlib.h>

int fr_id_table_init(struct fr_id_table *t, size_t n)
{
	size_t size = 16;

	while (size < 2 * n + 1)
		size *= 2;
	t->entries = calloc(size, sizeof(*t->entries));
	if (!t->entries)
		return -ENOMEM;
	t->mask = size - 1;
	return 0;
}

void fr_id_table_deinit(struct fr_id_table *t)
{
	free(t->entries);
	t->entries = NULL;
}

void fr_id_table_add(struct fr_id_table *t, uint64_t id, uint32_t slot)
{
	uint64_t i = id & t->mask;

	while (t->entries[i].id && t->entries[i].id != id)
		i = (i + 1) & t->mask;
	t->entries[i].id = id;
	t->entries[i].slot = slot;
}
