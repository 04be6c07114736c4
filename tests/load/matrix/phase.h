/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Functions and includes that the programs of the test matrix share. A program uses the CPU in phases. In
 * each phase, one thread runs one function with a known name. The program prints a line about each phase:
 * pid, tid and comm as the kernel has them, and begin and end by CLOCK_MONOTONIC. So for every sample of
 * these programs, a test knows which process, thread and function the sample must show.
 */

#include <err.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FR_PHASE_FRAME __attribute__((noinline, noclone, noipa))

/* Defines a burner: a function that only uses CPU time. It refers to nothing outside itself, so its code runs
   at any address. */
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

/* Returns how many rounds of a burner take CPU_MS of CPU time. The first call measures how fast a burner
   is. */
uint64_t fr_phase_rounds(uint64_t cpu_ms);

/* Run BURN as a phase, for the CPU time that fr_phase_ms() returns, and print the phase. SYMBOLS is a list of
   symbols, separated by commas. A profile has to show one of them. In this list, "dso:X" means each symbol of
   an object file whose name begins with X. Any thread may call fr_phase(). */
void fr_phase(fr_burner burn, const char *symbols);

/* Print the line about a phase that the caller has run and that began at BEGIN_NS. It ends now. RULE is
   "leaf" or "kernel", which tests/integration/judge.py explains. */
void fr_phase_report(uint64_t begin_ns, const char *symbols, const char *rule);

/* If the environment has FR_PHASE_STOP, fr_phase_stop() stops this process until a SIGCONT. If the
   environment has FR_PHASE_HOLD, fr_phase_hold() waits until a signal ends the program. */
void fr_phase_stop(void);
void fr_phase_hold(void);

/* CPU time of a phase in ms: FR_PHASE_MS of the environment, or 300. */
uint64_t fr_phase_ms(void);

/* Print a fact about the case: {"note": KEY, "value": VALUE}. */
void fr_phase_note(const char *key, uint64_t value);
