// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/change.h"
#include "base/cleanup.h"
#include "base/worker.h"

#include <errno.h>

struct fr_change {
	struct fr_daemon *daemon;
	const struct fr_change_ops *ops;
	void *ctx;
};

static void prepare(void *arg)
{
	struct fr_change *c = arg;

	c->ops->prepare(c->ctx);
}

static void finish(struct fr_daemon *m, bool aborted)
{
	struct fr_change *c = TAKE_PTR(m->change);

	c->ops->finish(m, c->ctx, aborted);
	free(c);
}

static void on_prepared(void *arg)
{
	struct fr_daemon *m = ((struct fr_change *)arg)->daemon;
	void (*next)(struct fr_daemon * daemon) = TAKE_PTR(m->next_change);

	finish(m, false);
	if (next)
		next(m);
	/* If CPUs came online during the change, no reopen could begin at that time, so try to begin it
	   now. */
	fr_cpu_watch_tick(m->cpu_watch);
}

int fr_change_begin(struct fr_daemon *m, const struct fr_change_ops *ops, void *ctx)
{
	struct fr_change *c;

	fr_thread_assert(FR_THREAD_MAIN);
	if (m->change)
		return -EBUSY;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct fr_change){.daemon = m, .ops = ops, .ctx = ctx};
	m->change = c;
	return fr_worker_run(m->change_worker, &(struct fr_work){prepare, on_prepared, c});
}

void fr_change_set_next(struct fr_daemon *m, void (*next)(struct fr_daemon *daemon))
{
	m->next_change = next;
}

void fr_change_abort(struct fr_daemon *m)
{
	m->next_change = NULL;
	m->change_worker = fr_worker_free(m->change_worker);
	if (m->change)
		finish(m, true);
}
