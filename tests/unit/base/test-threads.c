// SPDX-License-Identifier: GPL-2.0-or-later
/* The asserts of the thread contract: what breaks it aborts, and nothing else does. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/lock.h"
#include "base/thread.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct fr_lock lock;
static struct fr_cond cond;

/* Whether BREAK_RULE, in a process of its own, aborts. */
static bool aborts(void (*break_rule)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		prctl(PR_SET_DUMPABLE, 0);
		break_rule();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void *take_lock(void *arg)
{
	fr_lock(&lock);
	return arg;
}

static void unlock_of_another_thread(void) FR_NO_THREAD_SAFETY_ANALYSIS
{
	pthread_t thread;

	pthread_create(&thread, NULL, take_lock, NULL);
	pthread_join(thread, NULL);
	fr_unlock(&lock);
}

static void use_without_lock(void)
{
	fr_lock_assert_held(&lock);
}

static void wait_without_lock(void) FR_NO_THREAD_SAFETY_ANALYSIS
{
	fr_cond_wait(&cond, &lock);
}

static void main_is_not_recorder(void)
{
	fr_thread_begin(FR_THREAD_MAIN);
	fr_thread_assert(FR_THREAD_RECORDER);
}

static void recorder_waits(void)
{
	fr_thread_begin(FR_THREAD_RECORDER);
	fr_thread_assert_may_wait();
}

static void main_is_excluded(void)
{
	fr_thread_begin(FR_THREAD_MAIN);
	fr_thread_assert_not(FR_THREAD_MAIN);
}

static void keep_the_rules(void)
{
	fr_thread_assert(FR_THREAD_MAIN); /* unnamed */
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

static void test_rules(void **state)
{
	void (*const broken[])(void) = {unlock_of_another_thread, use_without_lock, wait_without_lock,
		main_is_not_recorder, recorder_waits, main_is_excluded};

#ifndef FR_CHECKED
	skip(); /* a release build does not check */
#endif
	for (size_t i = 0; i < FR_ARRAY_SIZE(broken); i++)
		assert_true(aborts(broken[i]));
	assert_false(aborts(keep_the_rules));
}

static void *hold_lock(void *arg)
{
	int *held = arg;
	char c;

	fr_lock(&lock);
	(void)!write(held[1], "x", 1);
	(void)!read(held[2], &c, 1);
	fr_unlock(&lock);
	return NULL;
}

static void test_lock_until(void **state)
{
	const uint64_t limit_ns = 20 * FR_NSEC_PER_MSEC;
	int held[2], release[2];
	pthread_t thread;
	uint64_t begin;
	char c;

	assert_int_equal(pipe(held), 0);
	assert_int_equal(pipe(release), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_lock, (int[]){held[0], held[1], release[0]}), 0);
	assert_int_equal(read(held[0], &c, 1), 1);
	begin = fr_monotonic_ns();
	if (fr_lock_until(&lock, begin + limit_ns)) {
		fr_unlock(&lock);
		fail();
	}
	assert_true(fr_monotonic_ns() - begin >= limit_ns);
	assert_int_equal(write(release[1], "x", 1), 1);
	pthread_join(thread, NULL);
	if (!fr_lock_until(&lock, fr_monotonic_ns() + FR_NSEC_PER_SEC))
		fail();
	fr_unlock(&lock);
}

static int set_up(void **state)
{
	fr_lock_init(&lock);
	fr_cond_init(&cond);
	return 0;
}

static int tear_down(void **state)
{
	fr_cond_deinit(&cond);
	fr_lock_deinit(&lock);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_lock_until),
	};

	return cmocka_run_group_tests_name("threads", tests, set_up, tear_down);
}
