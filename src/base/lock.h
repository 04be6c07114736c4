/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A mutex that knows which thread holds it, and a condition variable on the monotonic clock. clang checks the
 * annotations at compile time (-Wthread-safety, run by `./dev lint`); fr_lock_assert_held() checks at run
 * time what clang cannot check, in builds with FR_CHECKED (all but release).
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __clang__
#define FR_CAPABILITY(name) __attribute__((capability(name)))
#define FR_ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define FR_TRY_ACQUIRES(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define FR_RELEASES(...) __attribute__((release_capability(__VA_ARGS__)))
/* The caller holds the lock. */
#define FR_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
/* The caller does not hold the lock. */
#define FR_EXCLUDES(...) __attribute__((locks_excluded(__VA_ARGS__)))
#define FR_ASSERTS_HELD(...) __attribute__((assert_capability(__VA_ARGS__)))
#define FR_NO_THREAD_SAFETY_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define FR_CAPABILITY(name)
#define FR_ACQUIRES(...)
#define FR_TRY_ACQUIRES(...)
#define FR_RELEASES(...)
#define FR_REQUIRES(...)
#define FR_EXCLUDES(...)
#define FR_ASSERTS_HELD(...)
#define FR_NO_THREAD_SAFETY_ANALYSIS
#endif

struct FR_CAPABILITY("mutex") fr_lock {
	pthread_mutex_t mutex;
	_Atomic(pid_t) owner; /* thread id; 0: none */
};

struct fr_cond {
	pthread_cond_t cond;
};

void fr_lock_init(struct fr_lock *lock);
/* Call this function only when no thread holds LOCK. */
void fr_lock_deinit(struct fr_lock *lock);

void fr_lock(struct fr_lock *lock) FR_ACQUIRES(*lock);
void fr_unlock(struct fr_lock *lock) FR_RELEASES(*lock);
/* Waits at most until UNTIL_NS (monotonic). Returns whether this thread has taken the lock. */
bool fr_lock_until(struct fr_lock *lock, uint64_t until_ns) FR_TRY_ACQUIRES(true, *lock);
/* In builds with FR_CHECKED, aborts with a message if this thread does not hold LOCK. */
void fr_lock_assert_held(struct fr_lock *lock) FR_ASSERTS_HELD(*lock);

void fr_cond_init(struct fr_cond *cond);
/* Call this function only when no thread waits on COND. */
void fr_cond_deinit(struct fr_cond *cond);

/* Releases LOCK, waits for a broadcast, and takes LOCK again. The function can also return without a
   broadcast. */
void fr_cond_wait(struct fr_cond *cond, struct fr_lock *lock) FR_REQUIRES(*lock);
/* Does the same as fr_cond_wait(), but waits at most until UNTIL_NS (monotonic). Returns false if that time
   has come. */
bool fr_cond_wait_until(struct fr_cond *cond, struct fr_lock *lock, uint64_t until_ns) FR_REQUIRES(*lock);
/* Wakes all threads that wait. */
void fr_cond_broadcast(struct fr_cond *cond);
