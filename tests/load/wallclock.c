/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A library for LD_PRELOAD. It moves the wall clock of one process: the environment variable
   FRTEST_WALL_SHIFT has the number of seconds, which can be negative. The other clocks do not change. So
   processes on one machine can act as machines whose wall clocks are wrong. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

/* A time of CLOCK_MONOTONIC is always less than this, and a time of the wall clock is always more. */
#define WALL_BEGIN 1000000000

static time_t shift(void)
{
	const char *text = getenv("FRTEST_WALL_SHIFT");

	return text ? (time_t)strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int (*real)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int r = real(clock, ret);

	if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ret->tv_sec += shift();
	return r;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}

/* The kernel compares the deadline with its own wall clock, which is not moved. */
int pthread_cond_timedwait(
	pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict until)
{
	int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) = (int (*)(pthread_cond_t *,
		pthread_mutex_t *, const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	struct timespec t = *until;

	if (t.tv_sec > WALL_BEGIN)
		t.tv_sec -= shift();
	return real(cond, mutex, &t);
}
