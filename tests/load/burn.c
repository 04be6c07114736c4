/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Uses one CPU in user space, in a stack of known functions: main, top, middle, hot. With -t it ends after a
   time. With -u it ends after it has used an amount of CPU time, so that the load is the same on a busy
   machine. */

#include "load.h"

static volatile uint64_t sink;
static uint64_t (*clock_ns)(void) = fr_load_now_ns;

FR_LOAD_FRAME static uint64_t frtest_burn_hot(uint64_t end)
{
	uint64_t rounds = 0;

	/* Read the clock rarely, so that a profile does not show the symbol of the clock. */
	do {
		for (unsigned i = 0; i < 1000000; i++)
			sink = sink * 2862933555777941757ULL + i;
		rounds++;
	} while (clock_ns() < end);
	return rounds;
}

FR_LOAD_FRAME static uint64_t frtest_burn_middle(uint64_t end)
{
	uint64_t rounds = frtest_burn_hot(end);

	sink++;
	return rounds;
}

FR_LOAD_FRAME static uint64_t frtest_burn_top(uint64_t end)
{
	uint64_t rounds = frtest_burn_middle(end);

	sink++;
	return rounds;
}

int main(int argc, char *argv[])
{
	uint64_t ns = 1000000000ULL, cpu_ns = 0;
	int cpu = -1;

	fr_load_options(argc, argv, "frtest-burn [-t SECONDS | -u CPU_SECONDS] [-c CPU]",
		(struct fr_load_option[]){
			{'t', .ns = &ns}, {'u', .ns = &cpu_ns}, {'c', .number = &cpu}, {0}});
	if (cpu_ns)
		clock_ns = fr_load_cpu_ns;
	fr_load_pin(cpu);

	uint64_t begin = fr_load_now_ns();
	uint64_t rounds = frtest_burn_top(clock_ns() + (cpu_ns ? cpu_ns : ns));
	printf("{\"pid\":%d,\"rounds\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"cpu_s\":%.3f}\n", getpid(), rounds,
		fr_load_now_ns() - begin, (double)fr_load_cpu_ns() / 1e9);
	return 0;
}
