/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The library of frtest-culprit. */

#include <stdint.h>

void culprit_library_loop(unsigned n);

static volatile uint64_t sink;

void culprit_library_loop(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i * sink;
}
