/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Copies of object files in the layout of perf's build-id cache. `perf --buildid-dir DIR` finds a copy by
 * build-id when the file itself was removed or replaced:
 *
 *     .build-id/XX/REST -> ../../PATH/BUILDID          the key and its target
 *     PATH/BUILDID/elf                                 (or kallsyms, or vdso) the copy
 *
 * perf looks only at the build-id, but any user can put any build-id into a file. So copies of root's files
 * replace copies of other files, and the cache keeps no copy for a contested build-id: a build-id for which
 * two users have different files (docs/design/40).
 *
 * The number of bytes and entries is bounded. The least recently used entries are evicted first. An entry is
 * used when it is added, and when a sample of a dump hits its object; the mtime of its directory is the time
 * of the last use. Use a cache on one thread only. Other programs can read the files at any time, because
 * each entry appears as a whole.
 */

#include "base/diag.h"
#include "objects/hits.h"

#include <stdint.h>
#include <sys/types.h>

struct fr_object_cache;

struct fr_object_cache_config {
	int dirfd;	     /* directory of the dumps; the caller closes it */
	const char *name;    /* name of the cache in dirfd; created if it does not exist */
	uint64_t bytes_max;  /* largest size of the cache */
	uint64_t object_max; /* largest size of a file; the cache keeps no larger file */
	gid_t gid;	     /* group of the files; (gid_t)-1: do not change it */
};

int fr_object_cache_open(
	const struct fr_object_cache_config *config, struct fr_object_cache **ret, struct fr_diag *d);
struct fr_object_cache *fr_object_cache_free(struct fr_object_cache *c);
/* Returns whether the open cache is still the directory config.name in config.dirfd. */
bool fr_object_cache_is_in_place(const struct fr_object_cache *c);

/* Begins to add the objects of a new dump. Entries that are used after this call are not evicted before the
   next call, so the objects of one dump do not evict each other. */
void fr_object_cache_begin_dump(struct fr_object_cache *c);

/* Keeps a copy of O. The file is opened by /proc/PID/map_files, which works only while the process has the
   map. If that fails, the file is opened by its name in the root directory of the process, and then by its
   name in our root directory. The file must have the build-id of O. If O has no build-id, the file must have
   a build-id and the inode of O. Returns 0 if the cache has a copy; 1 if it has no copy, because the file is
   gone, changed, too large, without a build-id or not regular, or the build-id is contested, or there is no
   room; or the negative errno of a write. Can wait for a disk. */
int fr_object_cache_add(struct fr_object_cache *c, const struct fr_object *o);
/* Keeps the symbols of the running kernel. Returns 0; 1 if there is no copy, for example because the kernel
   hides its addresses; or a negative errno. */
int fr_object_cache_add_kernel(struct fr_object_cache *c);

struct fr_object_cache_stats {
	uint64_t objects, bytes; /* in the cache */
	uint64_t added, evicted;
};
void fr_object_cache_stats(const struct fr_object_cache *c, struct fr_object_cache_stats *ret);
