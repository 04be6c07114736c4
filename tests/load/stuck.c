/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Threads that wait, and whose waits never end. Usage: frtest-stuck
 *
 * Two threads wait for each other's mutex. The parent of a vfork() waits for its child in state D. Prints a
 * line of JSON for each: its pid, its tid, its state, and a time (CLOCK_MONOTONIC, ns) shortly before the
 * wait began. Then it waits until it is killed.
 */

#include "load.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both_hold_one;

static void print_wait(const char *state)
{
	printf("{\"pid\":%d,\"tid\":%d,\"state\":\"%s\",\"from_ns\":%" PRIu64 "}\n", getpid(), gettid(),
		state, fr_load_now_ns());
	fflush(stdout);
}

static void *wait_for_mutex(void *number)
{
	const size_t n = (size_t)number;

	pthread_mutex_lock(&mutexes[n]);
	pthread_barrier_wait(&both_hold_one);
	print_wait("S");
	pthread_mutex_lock(&mutexes[!n]);
	return NULL;
}

/* The child ends with its parent. */
static void wait_for_child(void)
{
	const pid_t parent = fork();

	if (parent < 0)
		err(EXIT_FAILURE, "fork");
	if (parent > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	print_wait("D");
	if (vfork() == 0) { /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	_exit(EXIT_SUCCESS);
}

int main(void)
{
	pthread_t threads[2];

	wait_for_child();
	pthread_barrier_init(&both_hold_one, NULL, 2);
	for (size_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, wait_for_mutex, (void *)i))
			errx(EXIT_FAILURE, "no thread");
	pthread_join(threads[0], NULL);
	return EXIT_SUCCESS;
}
