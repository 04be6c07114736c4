// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the thread contract (base/thread.h): a function aborts if it runs on a thread that must not call
   it. */

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static struct fr_lock lock;
static struct fr_cond cond;

static int set_up(void **state)
{
	fr_lock_init(&lock);
	fr_cond_init(&cond);
	return 0;
}

GROUP_FIXTURE(set_up, NULL)

/* Runs BODY in a child, and returns whether it aborts. */
static bool aborts(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		prctl(PR_SET_DUMPABLE, 0);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void *take_lock(void *arg) FR_NO_THREAD_SAFETY_ANALYSIS
{
	fr_lock(&lock);
	return arg;
}

static void take_lock_on_another_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, take_lock, NULL);
	pthread_join(thread, NULL);
}

static void unlock_for_another_thread(void) FR_NO_THREAD_SAFETY_ANALYSIS
{
	take_lock_on_another_thread();
	fr_unlock(&lock);
}

static void assert_held_without_lock(void)
{
	fr_lock_assert_held(&lock);
}

static void wait_without_lock(void) FR_NO_THREAD_SAFETY_ANALYSIS
{
	fr_cond_wait(&cond, &lock);
}

static void call_recorder_function_from_main(void)
{
	fr_thread_begin(FR_THREAD_MAIN);
	fr_thread_assert(FR_THREAD_RECORDER);
}

static void wait_on_recorder(void)
{
	fr_thread_begin(FR_THREAD_RECORDER);
	fr_thread_assert_may_wait();
}

static void call_forbidden_function_from_main(void)
{
	fr_thread_begin(FR_THREAD_MAIN);
	fr_thread_assert_not(FR_THREAD_MAIN);
}

static void keep_the_contract(void)
{
	fr_thread_assert(FR_THREAD_MAIN); /* passes, because this thread has no name yet */
	fr_thread_assert_may_wait();
	fr_thread_begin(FR_THREAD_DUMPER);
	fr_thread_assert(FR_THREAD_DUMPER);
	fr_thread_assert_not(FR_THREAD_MAIN);
	fr_thread_assert_may_wait();
	fr_lock(&lock);
	fr_lock_assert_held(&lock);
	(void)fr_cond_wait_until(&cond, &lock, fr_monotonic_ns() + FR_NSEC_PER_MSEC);
	fr_lock_assert_held(&lock);
	fr_unlock(&lock);
}

TEST(breach_of_the_contract_aborts)
{
	void (*const breaches[])(void) = {unlock_for_another_thread, assert_held_without_lock,
		wait_without_lock, call_recorder_function_from_main, wait_on_recorder,
		call_forbidden_function_from_main};

#ifndef FR_CHECKED
	unit_skip("a release build does not check");
#endif
	for (size_t i = 0; i < FR_ARRAY_SIZE(breaches); i++)
		assert_true(aborts(breaches[i]));
	assert_false(aborts(keep_the_contract));
}

/* Tries for 20 ms to take a lock that another thread has. Aborts if it gets the lock, or ends too early. */
static void wait_for_taken_lock(void)
{
	const uint64_t until_ns = fr_monotonic_ns() + 20 * FR_NSEC_PER_MSEC;

	take_lock_on_another_thread();
	if (fr_lock_until(&lock, until_ns)) {
		fr_unlock(&lock);
		abort();
	}
	if (fr_monotonic_ns() < until_ns)
		abort();
}

TEST(lock_is_waited_for_until_its_time) FR_NO_THREAD_SAFETY_ANALYSIS
{
	assert_false(aborts(wait_for_taken_lock));
	assert_true(fr_lock_until(&lock, fr_monotonic_ns() + FR_NSEC_PER_SEC));
	fr_unlock(&lock);
}
