/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * One of two programs that take turns in one process: uses a CPU for MS milliseconds in known functions, and
 * then runs the program OTHER, COUNT times in all. The last one prints the pid. The programs have no frame
 * pointers, and their functions have the same addresses, but not the same frames.
 *
 *   frtest-turn-one COUNT MS OTHER
 */

#include "load.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(TURN, x)

static volatile uint64_t sink;

/* Makes the compiler keep MEMORY. */
static void use(void *memory)
{
	__asm__ volatile("" ::"r"(memory) : "memory");
}

FR_LOAD_FRAME static void NAME(spin)(uint64_t end)
{
	do {
		for (unsigned i = 0; i < 100000; i++)
			sink = sink * 2862933555777941757ULL + i;
	} while (fr_load_cpu_ns() < end);
}

#ifdef TURN_ALIGNED
/* The size of its frame is not known, and its stack is aligned, so its caller is found by its own frame. */
FR_LOAD_FRAME static void NAME(middle)(uint64_t ms)
{
	__attribute__((aligned(64))) char aligned[64];

	use(aligned);
	use(__builtin_alloca(64 + ms));
	NAME(spin)(fr_load_cpu_ns() + ms * 1000000ULL);
	sink++;
}

FR_LOAD_FRAME static void NAME(outer)(uint64_t ms)
{
	use(__builtin_alloca(ms * 3 + 1000));
	NAME(middle)(ms);
	sink++;
}
#else
FR_LOAD_FRAME static void NAME(outer)(uint64_t ms)
{
	char memory[3000];

	use(memory);
	NAME(spin)(fr_load_cpu_ns() + ms * 1000000ULL);
	sink++;
}
#endif

int main(int argc, char *argv[])
{
	const char *program = argv[0];
	char count[32];

	if (argc != 4)
		errx(2, "usage: %s COUNT MS OTHER", program);
	NAME(outer)(fr_load_count(argv[2]));
	if (fr_load_count(argv[1]) == 1) {
		printf("{\"pid\": %d}\n", getpid());
		return 0;
	}
	snprintf(count, sizeof(count), "%" PRIu64, fr_load_count(argv[1]) - 1);
	execl(argv[3], argv[3], count, argv[2], program, (char *)NULL);
	err(1, "cannot run %s", argv[3]);
}
