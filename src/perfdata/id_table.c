// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/id_table.h"

#include <errno.h>
#include <stdlib.h>

static int grow(struct fr_id_table *t)
{
	struct fr_id_table larger = {.n = t->n, .cap = t->cap ? t->cap * 2 : 64};

	larger.entries = calloc(larger.cap, sizeof(*larger.entries));
	if (!larger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < t->cap; i++)
		if (t->entries[i].id)
			larger.entries[fr_id_table_index(&larger, t->entries[i].id)] = t->entries[i];
	free(t->entries);
	*t = larger;
	return 0;
}

int fr_id_table_add(struct fr_id_table *t, uint64_t id, uint32_t slot)
{
	struct fr_id_entry *e;

	if (id == 0)
		return 0;
	if (t->n * 2 >= t->cap && grow(t) < 0)
		return -ENOMEM;
	e = &t->entries[fr_id_table_index(t, id)];
	t->n += e->id == 0;
	*e = (struct fr_id_entry){id, slot};
	return 0;
}

void fr_id_table_deinit(struct fr_id_table *t)
{
	free(t->entries);
	*t = (struct fr_id_table){0};
}
