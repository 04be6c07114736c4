/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A change of what is recorded: a reload (of the configuration) or a reopen (of the same events). To prepare
 * a change, files are read and events are opened. This can take long if a file system hangs, so the thread
 * fr-change does it. Then the main thread puts the change in place. There is at most one change at a time.
 * Only the main thread calls these functions, except prepare().
 */

#include "flightrecd/daemon.h"

struct fr_change_ops {
	void (*prepare)(void *ctx); /* runs on the thread; must not change the daemon */
	/* Runs on the main thread, and frees CTX. If `aborted` is true, the daemon is being closed, and
	   finish() must not change what is recorded. */
	void (*finish)(struct fr_daemon *daemon, void *ctx, bool aborted);
};

/* Begins a change. Returns 0; -EBUSY if another change is being prepared; or -ENOMEM. On failure, the caller
   still owns CTX. */
int fr_change_begin(struct fr_daemon *daemon, const struct fr_change_ops *ops, void *ctx);
/* Makes the function next() run once, on the main thread, when the change that is being prepared has ended.
   If this function is called a second time before that, only the second next() runs. */
void fr_change_set_next(struct fr_daemon *daemon, void (*next)(struct fr_daemon *daemon));
/* Ends the thread. If a change is being prepared, aborts it. */
void fr_change_abort(struct fr_daemon *daemon);
