/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Copies of object files in the layout of perf's build-id cache. `perf --buildid-dir DIR` finds them by
 * build-id when the file itself is gone or was replaced:
 *
 *     .build-id/XX/REST -> ../../PATH/BUILDID          the key and its target
 *     PATH/BUILDID/elf                                 (or kallsyms, or vdso) the copy
 *
 * perf looks by build-id alone, but anybody who can write a file can put any build-id into it. So root's
 * files replace others, and the cache keeps no copy of a contested build-id (docs/design/40).
 *
 * Bytes and entries are bounded. The least recently used entries go first; an entry is used when it is added
 * and when a dump hits it. The mtime of its directory is the time of its last use. One thread; others may
 * read meanwhile, as each entry appears whole.
 */

#include "base/diag.h"
#include "objects/hits.h"

#include <stdint.h>
#include <sys/types.h>

struct fr_object_cache;

struct fr_object_cache_config {
	int dirfd;	     /* of the dumps; borrowed */
	const char *name;    /* of the cache in that directory; created if it does not exist */
	uint64_t bytes_max;  /* of the cache */
	uint64_t object_max; /* of one file; a larger file is not kept */
	gid_t gid;	     /* of its files; (gid_t)-1: leave */
};

int fr_object_cache_open(
	const struct fr_object_cache_config *config, struct fr_object_cache **ret, struct fr_diag *d);
struct fr_object_cache *fr_object_cache_free(struct fr_object_cache *c);
/* The open cache is still the directory NAME in config.dirfd. */
bool fr_object_cache_is_in_place(const struct fr_object_cache *c);

/* A new dump begins. Entries that are used until the next call are not evicted, so the objects of one dump do
   not evict each other. */
void fr_object_cache_begin_dump(struct fr_object_cache *c);

/* Keep a copy of O. The file is opened by its map while the process runs, else by its name in the process's
   root, else in ours. It must have the build-id of O, or its inode if O has no build-id. 0: the cache has it;
   1: it does not: the file is gone, changed, too large, without a build-id or not regular, or there is no
   room; or the negative errno of a write. May wait for a disk. */
int fr_object_cache_add(struct fr_object_cache *c, const struct fr_object *o);
/* Keep the symbols of the running kernel. Same returns; 1: the kernel hides its addresses. */
int fr_object_cache_add_kernel(struct fr_object_cache *c);

struct fr_object_cache_stats {
	uint64_t objects, bytes; /* in the cache */
	uint64_t added, evicted;
};
void fr_object_cache_stats(const struct fr_object_cache *c, struct fr_object_cache_stats *ret);
