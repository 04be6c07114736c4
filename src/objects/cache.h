/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Copies of object files in the layout of perf's build-id cache, so that `perf --buildid-dir DIR` finds them
 * by build-id when the file itself is gone or another:
 *
 *     .build-id/XX/REST -> ../../PATH/BUILDID          the key, and where it leads
 *     PATH/BUILDID/elf                                 (or kallsyms, or vdso) the copy
 *
 * Whoever can write a file can put any build-id into it, and perf looks by build-id alone. So a file of root
 * that nobody else may write takes the place of any other; and where users who are not root have different
 * files of one build-id, none is kept for it, and what is kept of one user's serves only maps of the same
 * file.
 *
 * Bounded in bytes, and in entries, as one without a copy is a directory and a link, too; the least recently
 * used go first, where used means added or hit by a dump. The directory's time of change tells when.
 * Single-threaded; others may read meanwhile: each entry appears whole.
 */

#include "base/diag.h"
#include "objects/hits.h"

#include <stdint.h>
#include <sys/types.h>

struct fr_object_cache;

struct fr_object_cache_config {
	int dirfd;	     /* of the dumps; borrowed */
	const char *name;    /* of the cache in it: made if it is not there */
	uint64_t bytes_max;  /* all of it */
	uint64_t object_max; /* one file; a larger one is not kept */
	gid_t gid;	     /* (gid_t)-1: leave */
};

int fr_object_cache_open(
	const struct fr_object_cache_config *config, struct fr_object_cache **ret, struct fr_diag *d);
struct fr_object_cache *fr_object_cache_free(struct fr_object_cache *c);
/* Whether it is what has its name in config.dirfd, which may become another directory. */
bool fr_object_cache_is_in_place(const struct fr_object_cache *c);

/* From here on nothing that is used is evicted until the next call: what one dump needs does not push itself
   out. */
void fr_object_cache_begin_dump(struct fr_object_cache *c);

/* Keep what O tells of: by its map while that process lives, else by its name there or here, and only where
   the copy has the build-id (or, where the record had none, the file its inode). 0: it is there now; 1: it is
   not, as the file is gone, changed, too large, without a build-id, no regular file, or there is no room for
   it; a negative errno of writing. */
int fr_object_cache_add(struct fr_object_cache *c, const struct fr_object *o);
/* The running kernel's symbols. Same returns; 1: we may not see its addresses. */
int fr_object_cache_add_kernel(struct fr_object_cache *c);

struct fr_object_cache_stats {
	uint64_t objects, bytes; /* that are there */
	uint64_t added, evicted;
};
void fr_object_cache_stats(const struct fr_object_cache *c, struct fr_object_cache_stats *ret);
