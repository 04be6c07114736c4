/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Calls getppid() as fast as it can, for a time (-t) or N times (-n). */

#include "load.h"

#include <sys/syscall.h>

/* The program reads the clock only after each BATCH calls. The vDSO reads the clock without a system call, so
 * getppid() is the only system call. */
#define BATCH 256

/* getppid() takes no arguments, but a record of a system call has six arguments. If the program passed none,
 * the record would have what the compiler left in the registers, and the size of the compressed records would
 * depend on these values. */
FR_LOAD_FRAME static void frtest_getppid(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		syscall(SYS_getppid, 3, &n, 4096, 0, 0, 0);
}

static uint64_t run_for(uint64_t ns)
{
	uint64_t calls = 0, end = fr_load_now_ns() + ns;

	while (fr_load_now_ns() < end) {
		frtest_getppid(BATCH);
		calls += BATCH;
	}
	return calls;
}

int main(int argc, char *argv[])
{
	uint64_t count = 0, ns = 1000000000ULL;
	int cpu = -1;

	fr_load_options(argc, argv, "frtest-syscalls [-n CALLS | -t SECONDS] [-c CPU]",
		(struct fr_load_option[]){
			{'n', .count = &count}, {'t', .ns = &ns}, {'c', .number = &cpu}, {0}});
	fr_load_pin(cpu);

	uint64_t begin = fr_load_now_ns();
	if (count)
		frtest_getppid(count);
	else
		count = run_for(ns);
	uint64_t took = fr_load_now_ns() - begin;

	printf("{\"pid\":%d,\"calls\":%" PRIu64 ",\"nr\":%d,\"ns\":%" PRIu64 ",\"ns_per_call\":%.1f}\n",
		getpid(), count, SYS_getppid, took, (double)took / (double)count);
	return 0;
}
