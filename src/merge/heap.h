/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The inputs, the one with the oldest record on top. Equal times: side-band first, then by input. */

#include "merge/cursor.h"

struct fr_heap_node {
	struct fr_cursor_record head;
	size_t input;
};

struct fr_heap {
	struct fr_heap_node *nodes; /* the caller's, room for all inputs */
	size_t n;
};

/* The head of node I (0: the top) is a later one now; NODE is new; the top is to go. */
void fr_heap_sift(struct fr_heap *h, size_t i);
void fr_heap_push(struct fr_heap *h, const struct fr_heap_node *node);
void fr_heap_pop(struct fr_heap *h);
/* A node besides the top with a record of the same time and class as the top's; 0: there is none. */
size_t fr_heap_tied(const struct fr_heap *h);
