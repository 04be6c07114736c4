/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Data that is too large for the memory: a file without a name in $TMPDIR, or in /var/tmp, which is on a
   disk. Not thread-safe. */

#include <stddef.h>
#include <stdint.h>

struct fr_spill {
	int fd; /* -1: nothing was written */
	uint64_t size;
};

#define FR_SPILL_INIT ((struct fr_spill){.fd = -1})

/* Appends LEN bytes. The first call makes the file. Returns 0 or a negative errno. */
int fr_spill_append(struct fr_spill *s, const void *data, size_t len);
/* Reads LEN bytes at AT. Returns 0; -EIO if the file does not have them; or another negative errno. */
int fr_spill_read(const struct fr_spill *s, uint64_t at, void *ret, size_t len);
/* Removes the file. S can be used again. */
void fr_spill_deinit(struct fr_spill *s);
