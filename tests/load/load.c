/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load.h"

#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <time.h>

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

void fr_load_sleep_until(uint64_t ns)
{
	const struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

void fr_load_sleep_ms(uint64_t ms)
{
	fr_load_sleep_until(fr_load_now_ns() + ms * 1000000);
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

void fr_load_options(int argc, char *argv[], const char *usage, const struct fr_load_option *options)
{
	const struct fr_load_option *o;
	char letters[32], *end = letters;
	int opt;

	for (o = options; o->letter; o++)
		end += sprintf(end, "%c:", o->letter);
	while ((opt = getopt(argc, argv, letters)) != -1) {
		for (o = options; o->letter && o->letter != opt; o++)
			;
		if (o->ns)
			*o->ns = fr_load_seconds(optarg);
		else if (o->count)
			*o->count = fr_load_count(optarg);
		else if (o->number)
			*o->number = atoi(optarg);
		else if (o->text)
			*o->text = optarg;
		else
			errx(EXIT_USAGE, "usage: %s", usage);
	}
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
