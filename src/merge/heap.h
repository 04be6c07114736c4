/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The inputs as a binary heap. The top has the oldest record. At equal times, side-band comes before samples,
   then the order of the inputs decides. */

#include "merge/cursor.h"

struct fr_heap_node {
	struct fr_cursor_record head;
	size_t input;
};

struct fr_heap {
	struct fr_heap_node *nodes; /* memory of the caller, for all inputs */
	size_t n;
};

/* Orders the heap after node I (0: the top) got a later record or was replaced by the last node. */
void fr_heap_sift_down(struct fr_heap *h, size_t i);
/* Orders the nodes, which the caller filled in any order. */
void fr_heap_build(struct fr_heap *h);
/* Returns another node whose record has the same time as the top's, and also is or is not a sample; 0 if
   there is none. */
size_t fr_heap_find_tied(const struct fr_heap *h);
