/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Byte strings that many hold and that are kept once: names, files behind maps, namespaces.
 *
 * A thousand processes map the same few libraries; each map then costs one pointer. Not thread-safe.
 */

#include <stddef.h>
#include <stdint.h>

/* Without memory for a table entry, uthash leaves the element out instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct fr_blob {
	UT_hash_handle hh;
	uint32_t refs, len;
	uint8_t data[];
};

struct fr_blob_pool {
	struct fr_blob *all;
	size_t bytes;	  /* of the blobs, and whatever else their user adds: one account for one bound */
	size_t bytes_max; /* past it nothing new is taken */
};

/* A reference on the blob with these bytes; NULL: no memory, or the pool is at its bound. */
struct fr_blob *fr_blob_get(struct fr_blob_pool *pool, const void *data, size_t len);
struct fr_blob *fr_blob_ref(struct fr_blob *b); /* NULL-safe */
/* Gives one reference back. NULL-safe; returns NULL. */
struct fr_blob *fr_blob_unref(struct fr_blob_pool *pool, struct fr_blob *b);
