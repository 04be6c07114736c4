/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Takes the times out of a section of samples, so that zstd makes the section smaller (docs/design/27). zstd
 * finds bytes that repeat. The time is the only word that is new in nearly every sample. Without the times, a
 * match of zstd covers many samples. The times follow as differences, in columns of bytes.
 */

#include <stddef.h>
#include <sys/types.h>

struct fr_columns;

/* Allocates all memory for sections of up to MAX_BYTES, so fr_columns_encode() allocates no memory. Returns 0
   or -ENOMEM. One thread at a time uses an fr_columns. */
int fr_columns_new(size_t max_bytes, struct fr_columns **ret);
struct fr_columns *fr_columns_free(struct fr_columns *c);

/* Encodes LEN bytes of records, which are aligned to 8. Returns the number of encoded bytes, and sets *RET to
   them; they are valid until the next call. *RET_COLUMNS becomes the offset at which the columns begin.
   Returns 0 if RECORDS are not whole records, or are more than MAX_BYTES. */
size_t fr_columns_encode(
	struct fr_columns *c, const void *records, size_t len, const void **ret, size_t *ret_columns);

/* Returns the largest possible number of encoded bytes of LEN bytes. */
size_t fr_columns_bound(size_t len);

/* Restores the records that fr_columns_encode() got. DST has room for CAP bytes. Both SRC and DST are aligned
   to 8. SRC may be damaged or forged. Returns the number of bytes at DST; or -EBADMSG if SRC is not valid, or
   the records have more than CAP bytes. */
ssize_t fr_columns_decode(const void *src, size_t len, void *dst, size_t cap);
