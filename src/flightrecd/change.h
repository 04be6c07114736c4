/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A change of what is recorded: a reload or a reopen. To prepare a change, files are read and events are
 * opened. This can take long if a file system hangs, so the thread fr-change does it. Then the main thread
 * puts the change in place. There is at most one change at a time. Main thread, except prepare().
 */

#include "flightrecd/daemon.h"

struct fr_change_ops {
	void (*prepare)(void *ctx); /* runs on the thread; must not change the daemon */
	/* Runs on the main thread, and frees CTX. If ABORTED, the daemon is being closed, and finish() must
	   not change what is recorded. */
	void (*finish)(struct fr_daemon *daemon, void *ctx, bool aborted);
};

/* Begin a change. Returns 0; -EBUSY if another change is being prepared; or -ENOMEM. On failure, the caller
   still owns CTX. */
int fr_change_begin(struct fr_daemon *daemon, const struct fr_change_ops *ops, void *ctx);
/* Make NEXT run once, on the main thread, when the change that is being prepared has ended. A second call
   replaces NEXT. */
void fr_change_set_next(struct fr_daemon *daemon, void (*next)(struct fr_daemon *daemon));
/* End the thread, and abort the change that is being prepared, if there is one. */
void fr_change_abort(struct fr_daemon *daemon);
