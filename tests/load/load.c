/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load.h"

#include <err.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EXIT_USAGE 2

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t fr_load_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t fr_load_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t fr_load_seconds(const char *s)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v > 0) || v > 1e6)
		errx(EXIT_USAGE, "not a number of seconds: %s", s);
	return (uint64_t)(v * 1e9);
}

uint64_t fr_load_count(const char *s)
{
	char *end;

	errno = 0;
	uint64_t v = strtoull(s, &end, 10);
	if (end == s || *end || errno || !v || s[0] == '-')
		errx(EXIT_USAGE, "not a count: %s", s);
	return v;
}

volatile sig_atomic_t fr_load_terms;

static void on_term(int sig)
{
	(void)sig;
	fr_load_terms++;
}

void fr_load_count_terms(void)
{
	signal(SIGTERM, on_term);
}

void fr_load_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		err(EXIT_FAILURE, "cannot run on CPU %d", cpu);
}

void fr_load_program(const char *name, char *ret, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		err(EXIT_FAILURE, "cannot read /proc/self/exe");
	self[n] = 0;
	if ((size_t)snprintf(ret, size, "%s/%s", dirname(self), name) >= size)
		errx(EXIT_FAILURE, "the path is too long");
}
