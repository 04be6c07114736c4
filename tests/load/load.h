/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Functions and includes that the load programs share. Most load programs do one known thing, and then print
 * one line of JSON about it. They have frame pointers and symbols with known names, so that a test knows
 * exactly what a recording must have.
 */

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* fr_load_sleep_until() sleeps until the time NS of CLOCK_MONOTONIC. fr_load_sleep_ms() sleeps for MS
   milliseconds. */
void fr_load_sleep_until(uint64_t ns);
void fr_load_sleep_ms(uint64_t ms);

/* Both return the value of the argument S. For fr_load_seconds(), S is a number of seconds ("1.5"), and the
   result is in ns. For fr_load_count(), S is a whole number that is at least 1. If S is anything else, they
   end the program with exit code 2. */
uint64_t fr_load_seconds(const char *s);
uint64_t fr_load_count(const char *s);

/* Read the options of ARGV. The array OPTIONS ends with an element whose letter is 0. In each other element
   one pointer is not NULL. If the option is given, its value is stored there; otherwise the old value stays.
   A wrong option ends the program with exit code 2 and prints USAGE. */
struct fr_load_option {
	char letter;
	uint64_t *ns; /* gets seconds as ns */
	uint64_t *count;
	int *number;
	char **text;
};
void fr_load_options(int argc, char *argv[], const char *usage, const struct fr_load_option *options);

/* After a call of fr_load_count_terms(), a SIGTERM does not end the program, but adds 1 to fr_load_terms. */
void fr_load_count_terms(void);
extern volatile sig_atomic_t fr_load_terms;

/* Pin the calling thread to CPU, or do nothing if CPU is -1. Ends the program on failure. */
void fr_load_pin(int cpu);

/* Write the path of the program NAME, which is in the directory of this program, into RET. Ends the program
   on failure. */
void fr_load_program(const char *name, char *ret, size_t size);
