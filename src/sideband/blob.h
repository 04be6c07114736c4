/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A pool of byte strings with reference counts: names, files of maps, namespaces. The pool keeps equal
 * strings only once. If several processes map the same library, each of their maps costs only a pointer. Not
 * thread-safe.
 */

#include "sideband/hash.h"

#include <stddef.h>
#include <stdint.h>

struct fr_blob {
	UT_hash_handle hh;
	uint32_t refs, len;
	uint8_t data[];
};

struct fr_blob_pool {
	struct fr_blob *all;
	size_t bytes;	  /* bytes of the blobs, and bytes that the user of the pool adds */
	size_t bytes_max; /* limit of `bytes`; a new blob that would exceed it is not added */
};

/* Gets a reference to the blob with these LEN bytes. If the pool does not have this blob yet, the blob is
   added. Returns NULL if there is no memory, or the pool is full. */
struct fr_blob *fr_blob_get(struct fr_blob_pool *pool, const void *data, size_t len);
struct fr_blob *fr_blob_ref(struct fr_blob *b); /* NULL-safe */
/* Drops a reference. The blob is freed with its last reference. NULL-safe; returns NULL. */
struct fr_blob *fr_blob_unref(struct fr_blob_pool *pool, struct fr_blob *b);
