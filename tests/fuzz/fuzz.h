/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that the fuzz targets share. A target tests one input, which can be any bytes, and aborts if the
   tested code does not do what it promises. */

#include "base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check(bool ok)
{
	if (!ok)
		abort();
}

/* Returns a new memfd with the SIZE bytes of DATA. The caller closes it. */
static inline int make_memfd(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	check(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
	return fd;
}

/* Checks that TEXT ends within SIZE bytes, and is UTF-8 without control characters. */
static inline void check_text(const char *text, size_t size)
{
	const uint8_t *p = (const uint8_t *)text, *end = memchr(text, '\0', size);
	size_t n;

	check(end);
	for (; p < end; p += n) {
		n = fr_utf8_sequence(p, (size_t)(end - p));
		check(n > 0 && *p >= ' ' && *p != 0x7f && (*p != 0xc2 || p[1] >= 0xa0));
	}
}
