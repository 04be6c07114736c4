// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/change.h"
#include "base/cleanup.h"
#include "base/worker.h"

#include <errno.h>

struct fr_change {
	struct fr_daemon *daemon;
	const struct fr_change_ops *ops;
	void *ctx;
	struct fr_worker *worker;
};

static void prepare(void *arg)
{
	struct fr_change *c = arg;

	c->ops->prepare(c->ctx);
}

static void finish(struct fr_daemon *m, bool aborted)
{
	struct fr_change *c = TAKE_PTR(m->change);

	fr_worker_free(c->worker);
	c->ops->finish(m, c->ctx, aborted);
	free(c);
}

static void on_prepared(void *arg)
{
	struct fr_daemon *m = ((struct fr_change *)arg)->daemon;
	void (*next)(struct fr_daemon * daemon) = m->next_change;

	finish(m, false);
	m->next_change = NULL;
	if (next)
		next(m);
}

int fr_change_begin(struct fr_daemon *m, const struct fr_change_ops *ops, void *ctx, struct fr_diag *d)
{
	struct fr_change *c;
	int r;

	fr_thread_assert(FR_THREAD_MAIN);
	if (m->change)
		return fr_fail(d, -EBUSY, "try again", "another change is being prepared");
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct fr_change){.daemon = m, .ops = ops, .ctx = ctx};
	r = fr_worker_start(m->event, &(struct fr_worker_config){FR_THREAD_CHANGE, prepare, on_prepared, c},
		&c->worker, d);
	if (r < 0)
		free(c);
	else
		m->change = c;
	return r;
}

void fr_change_set_next(struct fr_daemon *m, void (*next)(struct fr_daemon *daemon))
{
	m->next_change = next;
}

void fr_change_abort(struct fr_daemon *m)
{
	m->next_change = NULL;
	if (m->change)
		finish(m, true);
}
