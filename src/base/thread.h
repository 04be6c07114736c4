/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks what each thread of flightrecd is allowed to do (docs/ARCHITECTURE.md, "Threads"). Each thread names
 * itself. A function that belongs to one thread, or that can wait for a disk, asserts that the name of the
 * calling thread is right. A failed assert aborts with a message in builds with FR_CHECKED (all but release).
 * Threads without a name, for example in unit tests and in other programs, pass all asserts.
 */

#include <pthread.h>

enum fr_thread {
	FR_THREAD_UNNAMED,
	FR_THREAD_MAIN,
	FR_THREAD_START,
	FR_THREAD_CONFIG,
	FR_THREAD_CHANGE,
	FR_THREAD_RECORDER,
	FR_THREAD_TRACKER,
	FR_THREAD_DUMPER,
	FR_THREAD_ARMING,
	FR_THREAD_COLLECTOR,
	FR_THREAD_UNWINDER,
	FR_THREAD_BUS, /* these four are threads of flightrec-agent */
	FR_THREAD_UPLOAD,
	FR_THREAD_COMMAND,
	FR_THREAD_WATCH,
	FR_THREADS
};

/* Names the calling thread, also in /proc ("fr-recorder"). The main thread keeps the name of the program in
   /proc. FR_THREAD_UNNAMED removes the name for the asserts, but not in /proc. */
void fr_thread_begin(enum fr_thread which);

/* Asserts that the calling thread is WHICH. */
void fr_thread_assert(enum fr_thread which);
/* Asserts that the calling thread is not WHICH. */
void fr_thread_assert_not(enum fr_thread which);
/* Asserts that the calling thread is allowed to wait for a file system. The main thread and the recorder are
   not allowed to wait. */
void fr_thread_assert_may_wait(void);
