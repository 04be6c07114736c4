/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <errno.h>
#include <stdlib.h>

/* Makes room for one more element of the array *V, which has N of at most MAX elements of SIZE bytes, and
 *room for CAP. Returns 0, -E2BIG or -ENOMEM. */
static inline int unwind_grow(void **v, size_t size, size_t n, size_t max, size_t *cap)
{
	const size_t new_cap = *cap ? *cap * 2 : 64;
	void *p;

	if (n < *cap)
		return 0;
	if (n >= max)
		return -E2BIG;
	p = reallocarray(*v, new_cap, size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = new_cap;
	return 0;
}
