/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Functions and includes that the programs of the test matrix share. A program burns CPU in phases. In each
 * phase, one thread runs one function of a known name. The program prints a line about each phase: pid, tid
 * and comm as the kernel has them, and begin and end by CLOCK_MONOTONIC. So for every sample of these
 * programs, a test knows which process, thread and function the sample must show.
 */

#include <err.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FR_PHASE_FRAME __attribute__((noinline, noclone, noipa))

/* A function that burns CPU. It refers to nothing outside itself, so its code runs at any address. */
#define FR_BURNER(NAME)                                                                                      \
	FR_PHASE_FRAME void NAME(uint64_t rounds)                                                            \
	{                                                                                                    \
		volatile uint64_t sink = rounds;                                                             \
                                                                                                             \
		for (uint64_t i = 0; i < rounds; i++)                                                        \
			sink = sink * 2862933555777941757ULL + i;                                            \
	}

typedef void (*fr_burner)(uint64_t rounds);

/* CLOCK_MONOTONIC in ns. */
uint64_t fr_phase_now_ns(void);

/* CPU time of the thread in ns. */
uint64_t fr_phase_cpu_ns(void);

/* Returns how many rounds of a burner take CPU_MS of CPU time. The first call measures it. */
uint64_t fr_phase_rounds(uint64_t cpu_ms);

/* Run BURN as a phase, for the CPU time that fr_phase_ms() returns, and report the phase. SYMBOLS lists, with
   commas, the symbols of which a profile has to show one. "dso:X" stands for each symbol of an object whose
   name begins with X. Any thread may call it. */
void fr_phase(fr_burner burn, const char *symbols);

/* Print the line about a phase that the caller has run from BEGIN_NS until now. RULE is "leaf" or "kernel"
   (tests/integration/judge.py explains them). */
void fr_phase_report(uint64_t begin_ns, const char *symbols, const char *rule);

/* fr_phase_stop(): if the environment has FR_PHASE_STOP, stop this process until a SIGCONT. fr_phase_hold():
   if the environment has FR_PHASE_HOLD, wait until a signal ends the program. */
void fr_phase_stop(void);
void fr_phase_hold(void);

/* CPU time of a phase in ms: FR_PHASE_MS of the environment, or 300. */
uint64_t fr_phase_ms(void);

/* Print a fact about the case: {"note": KEY, "value": VALUE}. */
void fr_phase_note(const char *key, uint64_t value);
