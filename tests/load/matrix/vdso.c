/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads the clock in a loop, mostly in the vDSO. */

#include "phase.h"

#include <time.h>

FR_PHASE_FRAME static void frtest_vdso_loop(uint64_t end_ns)
{
	struct timespec t;

	do {
		/* For CLOCK_MONOTONIC, the vDSO of some virtual machines calls a function without symbol. */
		for (unsigned i = 0; i < 100000; i++)
			clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
		/* Do not call fr_phase_cpu_ns() to read this clock, because the phase must be only in this
		   function and in the vDSO. */
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while ((uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec < end_ns);
}

int main(void)
{
	/* The first calls of getenv() and others can fault for some ms, so they are before the phase. */
	uint64_t end_ns = fr_phase_cpu_ns() + 2 * fr_phase_ms() * 1000000;
	uint64_t begin = fr_phase_now_ns();

	frtest_vdso_loop(end_ns);
	fr_phase_report(begin, "frtest_vdso_loop,clock_gettime,__clock_gettime,__vdso_clock_gettime", "leaf");
	return EXIT_SUCCESS;
}
