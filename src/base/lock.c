// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/lock.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / FR_NSEC_PER_SEC), (long)(ns % FR_NSEC_PER_SEC)};
}

static void set_owner(struct fr_lock *lock, pid_t owner)
{
	atomic_store_explicit(&lock->owner, owner, memory_order_relaxed);
}

/* Calls gettid() only once in each thread, because gettid() is a system call, and the recorder takes a lock
   for each run (the samples that it passes on in one call). */
static pid_t own_tid(void)
{
	static _Thread_local pid_t tid;

	if (!tid)
		tid = gettid();
	return tid;
}

void fr_lock_init(struct fr_lock *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
	set_owner(lock, 0);
}

void fr_lock_deinit(struct fr_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

void fr_lock(struct fr_lock *lock) FR_NO_THREAD_SAFETY_ANALYSIS
{
	pthread_mutex_lock(&lock->mutex);
	set_owner(lock, own_tid());
}

void fr_unlock(struct fr_lock *lock) FR_NO_THREAD_SAFETY_ANALYSIS
{
	fr_lock_assert_held(lock);
	set_owner(lock, 0);
	pthread_mutex_unlock(&lock->mutex);
}

static bool lock_mutex_until(pthread_mutex_t *mutex, uint64_t until_ns)
{
#ifdef __SANITIZE_THREAD__
	/* The ThreadSanitizer of gcc 12 does not see that pthread_mutex_clocklock() locks the mutex. So it
	   would report the unlock as an error: "unlock of an unlocked mutex". */
	while (pthread_mutex_trylock(mutex) != 0) {
		if (fr_monotonic_ns() >= until_ns)
			return false;
		(void)usleep(1000);
	}
	return true;
#else
	const struct timespec until = timespec_of(until_ns);

	return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until) == 0;
#endif
}

bool fr_lock_until(struct fr_lock *lock, uint64_t until_ns) FR_NO_THREAD_SAFETY_ANALYSIS
{
	if (!lock_mutex_until(&lock->mutex, until_ns))
		return false;
	set_owner(lock, own_tid());
	return true;
}

void fr_lock_assert_held(struct fr_lock *lock)
{
#ifdef FR_CHECKED
	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == own_tid())
		return;
	fprintf(stderr, "thread %d uses data without holding the lock of that data\n", (int)own_tid());
	abort();
#endif
}

void fr_cond_init(struct fr_cond *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&cond->cond, &attr);
	pthread_condattr_destroy(&attr);
}

void fr_cond_deinit(struct fr_cond *cond)
{
	pthread_cond_destroy(&cond->cond);
}

void fr_cond_wait(struct fr_cond *cond, struct fr_lock *lock)
{
	fr_lock_assert_held(lock);
	set_owner(lock, 0);
	pthread_cond_wait(&cond->cond, &lock->mutex);
	set_owner(lock, own_tid());
}

bool fr_cond_wait_until(struct fr_cond *cond, struct fr_lock *lock, uint64_t until_ns)
{
	const struct timespec until = timespec_of(until_ns);
	int r;

	fr_lock_assert_held(lock);
	set_owner(lock, 0);
	r = pthread_cond_timedwait(&cond->cond, &lock->mutex, &until);
	set_owner(lock, own_tid());
	return r != ETIMEDOUT;
}

void fr_cond_broadcast(struct fr_cond *cond)
{
	pthread_cond_broadcast(&cond->cond);
}
