/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A thread for functions that may wait for a file system. It runs one function at a time; when the function
 * has returned, another function runs on the event loop.
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
	void (*work)(void *ctx); /* on the thread */
	void (*done)(void *ctx); /* on the loop; may free the worker */
	void *ctx;
};

/* Start the thread, which is called WHICH. 0 or a negative errno with D. */
int fr_worker_new(enum fr_thread which, struct fr_worker **ret, struct fr_diag *d);
/* Run done() on EVENT from now on. Before the first run(). 0 or a negative errno. */
int fr_worker_attach(struct fr_worker *w, sd_event *event);
pid_t fr_worker_tid(const struct fr_worker *w);
/* Run WORK (copied). -EBUSY: another work runs. The thread of the loop. */
int fr_worker_run(struct fr_worker *w, const struct fr_work *work);
/* Wait for the thread. done() is not called any more. NULL-safe; returns NULL. */
struct fr_worker *fr_worker_free(struct fr_worker *w);
