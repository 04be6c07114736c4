/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A change of what is recorded: a reload or a reopen. A thread of its own prepares it, since files are read
 * and events are opened, which may wait for a file system. Then the main thread puts it in place. There is
 * one change at a time. Main thread, except prepare().
 */

#include "flightrecd/daemon.h"

struct fr_change_ops {
	void (*prepare)(void *ctx); /* on the thread; does not touch the daemon */
	/* On the main thread. ABORTED: the daemon is closed, nothing is to be changed. Frees CTX. */
	void (*finish)(struct fr_daemon *daemon, void *ctx, bool aborted);
};

/* 0; -EBUSY: another change is being prepared; -ENOMEM. If it fails, the caller keeps CTX. */
int fr_change_begin(struct fr_daemon *daemon, const struct fr_change_ops *ops, void *ctx);
/* Call NEXT when the change that is being prepared has ended. */
void fr_change_set_next(struct fr_daemon *daemon, void (*next)(struct fr_daemon *daemon));
/* End the thread, and abort the change that it prepared. */
void fr_change_abort(struct fr_daemon *daemon);
