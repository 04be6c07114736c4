/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Functions and includes that the programs of the test matrix share. A program burns CPU in phases. In each
 * phase, one thread runs one function of a known name. The program prints a line about each phase: pid, tid
 * and comm as the kernel has them, and begin and end by CLOCK_MONOTONIC. So a test knows for every sample
 * what it has to show.
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

/* How many rounds of a burner take so much CPU. It is measured once. */
uint64_t fr_phase_rounds(uint64_t cpu_ms);

/* Run a phase in BURN, of as much CPU as fr_phase_ms() says. A profile may show one of SYMBOLS, which have
   commas between them. "dso:X" stands for each symbol of an object whose name begins with X. Any thread. */
void fr_phase(fr_burner burn, const char *symbols);

/* Report a phase from BEGIN_NS until now, which the caller ran itself. RULE is "leaf" or "kernel"
   (tests/integration/judge.py). */
void fr_phase_report(uint64_t begin_ns, const char *symbols, const char *rule);

/* If the environment has FR_PHASE_STOP, stop until a SIGCONT. If it has FR_PHASE_HOLD, wait until a signal
   ends the program. */
void fr_phase_stop(void);
void fr_phase_hold(void);

/* CPU time of a phase in ms: FR_PHASE_MS of the environment, or 300. */
uint64_t fr_phase_ms(void);

/* Print a fact about the case: {"note": KEY, "value": VALUE}. */
void fr_phase_note(const char *key, uint64_t value);
