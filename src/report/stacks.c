// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/stacks.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t find_slot(const struct fr_stacks *s, uint32_t parent, uint32_t frame)
{
	size_t i = (((uint64_t)parent << 32 | frame) * 0x9e3779b97f4a7c15ULL) >> 30 & (s->n_slots - 1);

	while (s->slots[i] != FR_STACK_NONE &&
		(s->nodes[s->slots[i]].parent != parent || s->nodes[s->slots[i]].frame != frame))
		i = (i + 1) & (s->n_slots - 1);
	return i;
}

/* Doubles the room. There are twice as many slots as there is room for nodes. */
static int grow(struct fr_stacks *s)
{
	const size_t cap = s->cap ? 2 * s->cap : 1024;
	struct fr_stack_node *nodes = reallocarray(s->nodes, cap, sizeof(*nodes));
	uint32_t *slots;

	if (!nodes)
		return -ENOMEM;
	s->nodes = nodes;
	slots = malloc(2 * cap * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, 2 * cap * sizeof(*slots));
	free(s->slots);
	s->slots = slots;
	s->n_slots = 2 * cap;
	s->cap = cap;
	for (size_t i = 0; i < s->n; i++)
		s->slots[find_slot(s, nodes[i].parent, nodes[i].frame)] = (uint32_t)i;
	return 0;
}

uint32_t fr_stacks_push(struct fr_stacks *s, uint32_t parent, uint32_t frame)
{
	size_t slot;

	if (s->n == s->cap && s->cap < FR_STACK_NODES_MAX && grow(s) < 0)
		return FR_STACK_NONE;
	slot = find_slot(s, parent, frame);
	if (s->slots[slot] == FR_STACK_NONE && s->n == FR_STACK_NODES_MAX)
		return FR_STACK_FULL;
	if (s->slots[slot] == FR_STACK_NONE) {
		s->slots[slot] = (uint32_t)s->n;
		s->nodes[s->n++] = (struct fr_stack_node){parent, frame};
	}
	return s->slots[slot];
}

size_t fr_stacks_frames(const struct fr_stacks *s, uint32_t stack, uint32_t *ret, size_t max)
{
	size_t n = 0;

	for (; stack != FR_STACK_NONE && n < max; stack = s->nodes[stack].parent)
		ret[n++] = s->nodes[stack].frame;
	return n;
}

void fr_stacks_deinit(struct fr_stacks *s)
{
	free(s->nodes);
	free(s->slots);
	*s = (struct fr_stacks){0};
}
