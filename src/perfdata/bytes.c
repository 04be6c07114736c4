// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/bytes.h"

#include <stdlib.h>

int byte_set_add(struct byte_set *s, const void *data, size_t len)
{
	struct fr_buf *items;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->items[i].len == len && (len == 0 || memcmp(s->items[i].data, data, len) == 0))
			return 0;
	items = reallocarray(s->items, s->n + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	s->items = items;
	items[s->n] = (struct fr_buf){0};
	if (fr_buf_append(&items[s->n], data, len) < 0)
		return -ENOMEM;
	s->n++;
	return 0;
}

void byte_set_deinit(struct byte_set *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		fr_buf_deinit(&s->items[i]);
	free(s->items);
	*s = (struct byte_set){0};
}
