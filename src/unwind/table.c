// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/table.h"

#include <stdlib.h>

void fr_unwind_table_deinit(struct fr_unwind_table *t)
{
	free(t->pages);
	free(t->rows);
	free(t->rules);
	*t = (struct fr_unwind_table){0};
}

const struct fr_unwind_rule *fr_unwind_table_find(const struct fr_unwind_table *t, uint64_t pc)
{
	uint64_t page = pc >> FR_UNWIND_PAGE_BITS;
	const struct fr_unwind_row *rows;
	uint32_t low = 0, high;

	if (page < t->first_page || page - t->first_page >= t->n_pages)
		return t->rules;
	rows = t->rows + t->pages[page - t->first_page].first_row;
	high = t->pages[page - t->first_page].n_rows;
	if (high == 0)
		return t->rules;
	/* rows[low].pc <= pc < rows[high].pc */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (rows[middle].pc <= (pc & ((1u << FR_UNWIND_PAGE_BITS) - 1)))
			low = middle;
		else
			high = middle;
	}
	return &t->rules[rows[low].rule];
}
