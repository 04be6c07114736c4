/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes the tables of the objects that BPF programs need, and evicts others when memory is short. Not
   thread-safe. */

#include "unwind/objects.h"
#include "unwind/processes.h"

struct fr_unwind_tables {
	struct fr_unwind_objects *objects; /* borrowed, as the next two */
	struct fr_unwind_processes *processes;
	struct fr_unwind_memory *memory;
	uint64_t evict_ns;  /* evict nothing before this time */
	uint64_t search_ns; /* search for no trusted file in place of another one before this time */
	uint64_t made, failed, made_ns;
};

/* Makes the table that is needed most, or does a step on the way to it. If none is needed, searches for a
   trusted file of an object whose table comes from another one. Can take a second. Returns whether there was
   something to do. */
bool fr_unwind_tables_make_one(struct fr_unwind_tables *t, uint64_t now_ns);
