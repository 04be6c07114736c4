/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the load programs share. Each does one known thing, prints one line of JSON about it when it is done,
 * and has symbols of known names, built with frame pointers, so that a test can say exactly what has to be in
 * a recording.
 */

#include <signal.h>
#include <stdint.h>

/* A function that a profile must show under its own name. */
#ifdef __clang__
#define FR_LOAD_FRAME __attribute__((noinline, disable_tail_calls))
#else
#define FR_LOAD_FRAME __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))
#endif

/* CLOCK_MONOTONIC in ns. */
uint64_t fr_load_now_ns(void);

/* CPU time of the process in ns. */
uint64_t fr_load_cpu_ns(void);

/* Seconds ("1.5") as ns; ends the program with a usage error where S is no positive number. */
uint64_t fr_load_seconds(const char *s);

/* A whole number from 1; ends the program with a usage error otherwise. */
uint64_t fr_load_count(const char *s);

/* From now on a SIGTERM does not end the program, but is counted in fr_load_told. */
void fr_load_listen(void);
extern volatile sig_atomic_t fr_load_told;

/* Pin the calling thread to a CPU; -1 does nothing. Ends the program on failure. */
void fr_load_pin(int cpu);
