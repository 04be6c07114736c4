/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A thread for functions that can wait for a file system. The thread runs one function work() at a time. When
 * work() has returned, the function done() runs on the event loop.
 *
 *   main loop  run ───────────────────────────► done()
 *   thread      └──► work() ── eventfd ──────────┘
 */

#include "base/diag.h"
#include "base/thread.h"

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct fr_worker;

struct fr_work {
	void (*work)(void *ctx); /* runs on the thread */
	void (*done)(void *ctx); /* runs on the thread of the event loop; may free the worker */
	void *ctx;
};

/* Starts the thread with the name WHICH. Returns 0; or a negative errno, with a message in D. */
int fr_worker_new(enum fr_thread which, struct fr_worker **ret, struct fr_diag *d);
/* Makes EVENT the loop that calls done(). Call this function before the first fr_worker_run(). Returns 0 or a
   negative errno. */
int fr_worker_attach(struct fr_worker *w, sd_event *event);
pid_t fr_worker_tid(const struct fr_worker *w);
/* Copies WORK, and makes the thread run it. Returns 0; or -EBUSY if the function done() of the previous work
   has not been called yet. Only the thread of the loop may call this function. */
int fr_worker_run(struct fr_worker *w, const struct fr_work *work);
/* Waits until the thread has ended its work, and frees W. done() is not called any more. W may be NULL.
   Returns NULL. */
struct fr_worker *fr_worker_free(struct fr_worker *w);
