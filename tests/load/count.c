/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Passes increasing numbers as an argument of a system call: lseek(-1, 0), lseek(-1, 1), … These calls fail
 * and do nothing. A recording without a loss has each number once. The program counts as fast as it can, or
 * pauses after every 256 numbers (-p). It ends after a time (-t) or at a SIGTERM. With -s NUMBERS, it reads
 * standard input: for each byte it counts NUMBERS numbers and then writes a byte. In this case it ends at the
 * end of the input.
 */

#include "load.h"

#include <sys/syscall.h>

#define BATCH 256

/* The longest time from the start of a batch of 256 numbers to the start of the next batch. */
static uint64_t longest_ns;

FR_LOAD_FRAME static uint64_t frtest_count(uint64_t ns, useconds_t pause)
{
	uint64_t n = 0, now = fr_load_now_ns(), end = now + ns, before;

	while (!fr_load_terms && now < end) {
		for (unsigned i = 0; i < BATCH; i++)
			syscall(SYS_lseek, -1, n++, SEEK_SET);
		if (pause)
			usleep(pause);
		before = now;
		now = fr_load_now_ns();
		longest_ns = now - before > longest_ns ? now - before : longest_ns;
	}
	return n;
}

FR_LOAD_FRAME static uint64_t frtest_count_steps(uint64_t step)
{
	uint64_t n = 0;
	char byte;

	while (read(STDIN_FILENO, &byte, 1) == 1) {
		for (uint64_t i = 0; i < step; i++)
			syscall(SYS_lseek, -1, n++, SEEK_SET);
		if (write(STDOUT_FILENO, &byte, 1) != 1)
			err(EXIT_FAILURE, "cannot report a step");
	}
	return n;
}

int main(int argc, char *argv[])
{
	uint64_t ns = 1000000000ULL, begin, n, step = 0, pause = 0;
	int cpu = -1;

	fr_load_options(argc, argv, "frtest-count [-t SECONDS | -s NUMBERS] [-c CPU] [-p MICROSECONDS]",
		(struct fr_load_option[]){{'t', .ns = &ns}, {'s', .count = &step}, {'c', .number = &cpu},
			{'p', .count = &pause}, {0}});
	fr_load_pin(cpu);
	fr_load_count_terms();
	begin = fr_load_now_ns();
	n = step ? frtest_count_steps(step) : frtest_count(ns, (useconds_t)pause);
	printf("{\"pid\":%d,\"calls\":%" PRIu64 ",\"nr\":%d,\"ns\":%" PRIu64 ",\"longest_ns\":%" PRIu64 "}\n",
		getpid(), n, SYS_lseek, fr_load_now_ns() - begin, longest_ns);
	return 0;
}
