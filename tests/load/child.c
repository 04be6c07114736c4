/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A short process. It uses a CPU for MS milliseconds (its argument, default 20) in two known functions, and
   exits. */

#include "load.h"

static volatile uint64_t sink;

FR_LOAD_FRAME static void frtest_child_hot(uint64_t end)
{
	do {
		for (unsigned i = 0; i < 100000; i++)
			sink = sink * 2862933555777941757ULL + i;
	} while (fr_load_cpu_ns() < end);
}

FR_LOAD_FRAME static void frtest_child_outer(uint64_t ms)
{
	frtest_child_hot(fr_load_cpu_ns() + ms * 1000000ULL);
	sink++;
}

int main(int argc, char *argv[])
{
	frtest_child_outer(argc > 1 ? fr_load_count(argv[1]) : 20);
	return 0;
}
