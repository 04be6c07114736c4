/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The executable maps of one address space at one time. While only this program knows them, they are in an
 * array and can change. Once they are published, they are in the memory of BPF programs (struct
 * fr_unwind_process), and never change: the next change makes a new space. Processes share a space after a
 * fork. Not thread-safe.
 */

#include "sideband/hash.h"
#include "unwind/objects.h"

struct fr_unwind_space {
	UT_hash_handle hh; /* private to processes.c: the spaces that are not used any more, by AT */
	uint32_t refs;
	fr_unwind_at at;	    /* 0: not published yet */
	struct fr_unwind_map *maps; /* if published: in the memory of BPF programs */
	size_t n, cap;
};

/* Returns an empty space with one reference, or NULL. */
struct fr_unwind_space *fr_unwind_space_new(void);
/* Returns a copy of S that can change, with one reference, or NULL. */
struct fr_unwind_space *fr_unwind_space_copy(struct fr_unwind_objects *o, const struct fr_unwind_space *s);
/* Frees S, which has no references, and its references to objects. No BPF program can find S. */
void fr_unwind_space_free(struct fr_unwind_objects *o, struct fr_unwind_space *s);

/* Puts MAP into S, which is not published, in place of what was there. Takes over the caller's reference to
   the object, also on failure. Returns 0; -ENOMEM; or -E2BIG if there are too many maps. */
int fr_unwind_space_insert(
	struct fr_unwind_objects *o, struct fr_unwind_space *s, const struct fr_unwind_map *map);
bool fr_unwind_space_is_equal(const struct fr_unwind_space *a, const struct fr_unwind_space *b);

/* Publishes S. Returns 0; or -ENOSPC. */
int fr_unwind_space_publish(struct fr_unwind_memory *m, struct fr_unwind_space *s);
