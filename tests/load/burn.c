/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Burns one CPU in user space below a stack of known functions: main, top, middle, hot. */

#include "load.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile uint64_t sink;

FR_LOAD_FRAME static uint64_t frtest_burn_hot(uint64_t end)
{
	uint64_t rounds = 0;

	/* The clock is read rarely: its symbol (vDSO) must not show. */
	do {
		for (unsigned i = 0; i < 1000000; i++)
			sink = sink * 2862933555777941757ULL + i;
		rounds++;
	} while (fr_load_now_ns() < end);
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
	uint64_t ns = 1000000000ULL;
	int opt, cpu = -1;

	while ((opt = getopt(argc, argv, "t:c:")) != -1) {
		if (opt == 't')
			ns = fr_load_seconds(optarg);
		else if (opt == 'c')
			cpu = atoi(optarg);
		else
			errx(2, "usage: frtest-burn [-t SECONDS] [-c CPU]");
	}
	fr_load_pin(cpu);

	uint64_t begin = fr_load_now_ns();
	uint64_t rounds = frtest_burn_top(begin + ns);
	printf("{\"pid\":%d,\"rounds\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"cpu_s\":%.3f}\n", getpid(), rounds,
		fr_load_now_ns() - begin, (double)fr_load_cpu_ns() / 1e9);
	return 0;
}
