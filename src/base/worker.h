/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs a function that may wait for a file system on its own thread. When it has returned, another function
 * runs on the event loop.
 *
 *   main loop  start ───────────────────────────► done()
 *   thread       └──► work() ── eventfd ───────────┘
 */

#include "base/diag.h"
#include "base/thread.h"

#include <systemd/sd-event.h>

struct fr_worker;

struct fr_worker_config {
	enum fr_thread thread;
	void (*work)(void *ctx); /* runs on the thread */
	void (*done)(void *ctx); /* runs on the loop, when the thread has ended; may free the worker */
	void *ctx;
};

/* Starts the thread. Returns 0, or a negative errno with D. Main thread. */
int fr_worker_start(
	sd_event *event, const struct fr_worker_config *config, struct fr_worker **ret, struct fr_diag *d);
/* Waits for the thread. Does not call done(). Accepts NULL; returns NULL. */
struct fr_worker *fr_worker_free(struct fr_worker *w);
