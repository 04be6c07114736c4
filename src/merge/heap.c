// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/heap.h"
#include "base/cleanup.h"

static bool is_less(const struct fr_heap_node *a, const struct fr_heap_node *b)
{
	if (a->head.key != b->head.key)
		return a->head.key < b->head.key;
	if (a->head.sample != b->head.sample)
		return b->head.sample;
	return a->input < b->input;
}

void fr_heap_sift_down(struct fr_heap *h, size_t i)
{
	for (;;) {
		size_t least = i;
		struct fr_heap_node moved = h->nodes[i];

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < h->n; child++)
			if (is_less(&h->nodes[child], &h->nodes[least]))
				least = child;
		if (least == i)
			return;
		h->nodes[i] = h->nodes[least];
		h->nodes[least] = moved;
		i = least;
	}
}

void fr_heap_build(struct fr_heap *h)
{
	for (size_t i = h->n / 2; i-- > 0;)
		fr_heap_sift_down(h, i);
}

size_t fr_heap_find_tied(const struct fr_heap *h)
{
	for (size_t i = 1; i < FR_MIN(h->n, (size_t)3); i++)
		if (h->nodes[i].head.key == h->nodes[0].head.key &&
			h->nodes[i].head.sample == h->nodes[0].head.sample)
			return i;
	return 0;
}
