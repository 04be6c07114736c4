// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/heap.h"

static bool less(const struct fr_heap_node *a, const struct fr_heap_node *b)
{
	if (a->head.key != b->head.key)
		return a->head.key < b->head.key;
	if (a->head.sample != b->head.sample)
		return b->head.sample;
	return a->input < b->input;
}

static void swap(struct fr_heap_node *a, struct fr_heap_node *b)
{
	struct fr_heap_node t = *a;

	*a = *b;
	*b = t;
}

void fr_heap_sift(struct fr_heap *h, size_t i)
{
	for (;;) {
		size_t least = i, left = 2 * i + 1, right = left + 1;

		if (left < h->n && less(&h->nodes[left], &h->nodes[least]))
			least = left;
		if (right < h->n && less(&h->nodes[right], &h->nodes[least]))
			least = right;
		if (least == i)
			return;
		swap(&h->nodes[i], &h->nodes[least]);
		i = least;
	}
}

void fr_heap_push(struct fr_heap *h, const struct fr_heap_node *node)
{
	size_t i = h->n++;

	h->nodes[i] = *node;
	while (i > 0 && less(&h->nodes[i], &h->nodes[(i - 1) / 2])) {
		swap(&h->nodes[i], &h->nodes[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

void fr_heap_pop(struct fr_heap *h)
{
	h->nodes[0] = h->nodes[--h->n];
	fr_heap_sift(h, 0);
}

size_t fr_heap_tied(const struct fr_heap *h)
{
	for (size_t i = 1; i < h->n && i < 3; i++)
		if (h->nodes[i].head.key == h->nodes[0].head.key &&
			h->nodes[i].head.sample == h->nodes[0].head.sample)
			return i;
	return 0;
}
