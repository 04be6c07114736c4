/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A pool of byte strings with reference counts: names, files behind maps, namespaces. The pool keeps each
 * string once. Many processes map the same few libraries, and each map costs one pointer. Not
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
	size_t bytes_max; /* limit of BYTES; the pool refuses a new blob that does not fit */
};

/* Get a reference to the blob with these LEN bytes, which is added if the pool does not have it yet. Returns
   NULL if there is no memory, or the pool is full. */
struct fr_blob *fr_blob_get(struct fr_blob_pool *pool, const void *data, size_t len);
struct fr_blob *fr_blob_ref(struct fr_blob *b); /* NULL-safe */
/* Drop a reference. The last one frees the blob. NULL-safe; returns NULL. */
struct fr_blob *fr_blob_unref(struct fr_blob_pool *pool, struct fr_blob *b);
