/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A binary heap of the inputs, each with its next record. The top (node 0) has the oldest record. At equal
   times, side-band (all records that are not samples) comes before samples. Two records of the same time and
   kind are in the order of the inputs. */

#include "merge/cursor.h"

struct fr_heap_node {
	struct fr_cursor_record head;
	size_t input;
};

struct fr_heap {
	struct fr_heap_node *nodes; /* memory of the caller, for all inputs */
	size_t n;
};

/* Restores the order of the heap. Call it after node I (0: the top) has got a later record, or has been
   replaced by the last node. */
void fr_heap_sift_down(struct fr_heap *h, size_t i);
/* Brings the nodes into the order of a heap. The caller has filled them in any order. */
void fr_heap_build(struct fr_heap *h);
/* Returns the index of another node whose record has the same time as the record of the top and is of the
   same kind (sample or side-band); 0 if there is none. */
size_t fr_heap_find_tied(const struct fr_heap *h);
