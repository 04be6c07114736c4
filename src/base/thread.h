/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The threads of flightrecd, and what each of them may do (docs/ARCHITECTURE.md, "Threads"). A thread says
 * once which one it is. Functions that belong to one thread, and functions that may wait for a disk, assert
 * it. The asserts abort with a message in builds with FR_CHECKED (all but release). A thread that never said
 * which one it is, as in a unit test or in another program, passes all of them.
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
	FR_THREADS
};

/* The calling thread is WHICH from now on, and has its name in /proc ("fr-recorder"; the main thread keeps
   the program's name). */
void fr_thread_begin(enum fr_thread which);

/* The calling thread is WHICH. */
void fr_thread_assert(enum fr_thread which);
/* The calling thread is not WHICH. */
void fr_thread_assert_not(enum fr_thread which);
/* The calling thread may wait for a file system: it is neither the main thread nor the recorder thread. */
void fr_thread_assert_may_wait(void);
