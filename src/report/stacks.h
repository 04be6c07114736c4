/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The call stacks of a recording, as a tree: a node is a frame, and its parent is the caller. Each stack is
 * the number of its innermost node, so equal stacks have equal numbers. Not thread-safe.
 */

#include <stddef.h>
#include <stdint.h>

/* The most frames of a stack. */
#define FR_STACK_DEPTH_MAX 8192
#define FR_STACK_NONE UINT32_MAX /* the empty stack, and the parent of the outermost frames */
#define FR_STACK_FULL (UINT32_MAX - 1)
/* The most nodes of a tree, so that it needs at most 128 MiB. */
#define FR_STACK_NODES_MAX (1u << 23)

struct fr_stack_node {
	uint32_t parent, frame;
};

struct fr_stacks {
	struct fr_stack_node *nodes;
	size_t n, cap;
	uint32_t *slots; /* a hash table of nodes, with open addressing; FR_STACK_NONE: free */
	size_t n_slots;	 /* 0 or a power of two */
};

/* Returns the node of FRAME below PARENT; FR_STACK_FULL if it is not there, and the tree has the most nodes
   already; or FR_STACK_NONE if there is no memory. */
uint32_t fr_stacks_push(struct fr_stacks *s, uint32_t parent, uint32_t frame);
/* Writes the frames of STACK, the innermost first, into RET. Returns their number; if there are more than
   MAX, those are left out that are the outermost. */
size_t fr_stacks_frames(const struct fr_stacks *s, uint32_t stack, uint32_t *ret, size_t max);
void fr_stacks_deinit(struct fr_stacks *s);
