// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[FR_THREADS] = {
	[FR_THREAD_UNNAMED] = "unnamed",
	[FR_THREAD_MAIN] = "main",
	[FR_THREAD_START] = "fr-start",
	[FR_THREAD_CONFIG] = "fr-config",
	[FR_THREAD_CHANGE] = "fr-change",
	[FR_THREAD_RECORDER] = "fr-recorder",
	[FR_THREAD_TRACKER] = "fr-tracker",
	[FR_THREAD_DUMPER] = "fr-dumper",
	[FR_THREAD_ARMING] = "fr-arming",
	[FR_THREAD_COLLECTOR] = "fr-collector",
	[FR_THREAD_UNWINDER] = "fr-unwinder",
	[FR_THREAD_BUS] = "fr-bus",
	[FR_THREAD_UPLOAD] = "fr-upload",
	[FR_THREAD_COMMAND] = "fr-command",
	[FR_THREAD_WATCH] = "fr-watch",
};

static _Thread_local enum fr_thread current;

void fr_thread_begin(enum fr_thread which)
{
	current = which;
	if (which != FR_THREAD_MAIN && which != FR_THREAD_UNNAMED)
		pthread_setname_np(pthread_self(), names[which]);
}

#ifdef FR_CHECKED
#define FAIL(...) (fprintf(stderr, __VA_ARGS__), abort())
#else
#define FAIL(...) ((void)0)
#endif

void fr_thread_assert(enum fr_thread which)
{
	if (current != FR_THREAD_UNNAMED && current != which)
		FAIL("thread %s calls a function of thread %s\n", names[current], names[which]);
}

void fr_thread_assert_not(enum fr_thread which)
{
	if (current == which)
		FAIL("thread %s calls a function that it must not call\n", names[which]);
}

void fr_thread_assert_may_wait(void)
{
	if (current == FR_THREAD_MAIN || current == FR_THREAD_RECORDER)
		FAIL("thread %s calls a function that may wait for a disk\n", names[current]);
}
