/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the programs of the test matrix share. A program burns CPU in phases: in each, one thread is in one
 * function of a known name. It says of each phase on its standard output who it was (by the kernel's word:
 * pid, tid, comm) and from when to when by CLOCK_MONOTONIC, so that a judge can tell for every sample what it
 * has to be.
 */

#include <stddef.h>
#include <stdint.h>

#define FR_PHASE_FRAME __attribute__((noinline, noclone, noipa))

/* A leaf that burns: refers to nothing outside itself, so that its code may be copied to where one likes. */
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

/* How many rounds take so much CPU; measured once in a process image. */
uint64_t fr_phase_rounds(uint64_t cpu_ms);

/* One phase of FR_PHASE_MS ms of CPU (environment; 300) in BURN, whose name in a profile is one of SYMBOLS
   (comma between them; "dso:X": any in an object whose name begins with X). From any thread. */
void fr_phase(fr_burner burn, const char *symbols);

/* Tell of a phase that the caller made himself, from BEGIN_NS until now. RULE is "leaf", or "kernel": see the
 * judge. */
void fr_phase_tell(uint64_t begin_ns, const char *symbols, const char *rule);

/* Stops by itself until somebody continues it, or lives on until somebody ends it, where the environment has
   FR_PHASE_STOP or FR_PHASE_HOLD. */
void fr_phase_stop(void);
void fr_phase_hold(void);

/* CPU time of a phase in ms. */
uint64_t fr_phase_ms(void);

/* A fact about the case, for the judge: {"note": KEY, "value": VALUE}. */
void fr_phase_note(const char *key, uint64_t value);
