/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Functions and includes that the load programs share. Each program does one known thing, and then prints one
 * line of JSON about it. It has symbols of known names and frame pointers, so that a test knows exactly what
 * a recording has to hold.
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

/* Sleep until this CLOCK_MONOTONIC time; sleep for so long. */
void fr_load_sleep_until(uint64_t ns);
void fr_load_sleep_ms(uint64_t ms);

/* These read an argument: seconds ("1.5") as ns; a whole number from 1 on. They end the program with exit
   code 2 if S is anything else. */
uint64_t fr_load_seconds(const char *s);
uint64_t fr_load_count(const char *s);

/* Read the options of argv. OPTIONS ends with a letter 0; one pointer of each is not NULL, and keeps its
   value if the option is not given. A wrong option ends the program with exit code 2 and USAGE. */
struct fr_load_option {
	char letter;
	uint64_t *ns; /* gets seconds as ns */
	uint64_t *count;
	int *number;
	char **text;
};
void fr_load_options(int argc, char *argv[], const char *usage, const struct fr_load_option *options);

/* From now on, a SIGTERM does not end the program. fr_load_terms counts them. */
void fr_load_count_terms(void);
extern volatile sig_atomic_t fr_load_terms;

/* Pin the calling thread to CPU; -1: do nothing. Ends the program on failure. */
void fr_load_pin(int cpu);

/* Write the path of the program NAME, which is beside this one, into RET. Ends the program on failure. */
void fr_load_program(const char *name, char *ret, size_t size);
