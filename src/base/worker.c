// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/worker.h"
#include "base/cleanup.h"
#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct fr_worker {
	enum fr_thread which;
	pthread_t thread;
	pid_t tid;
	int done_fd;
	sd_event_source *source;
	bool is_busy; /* from fr_worker_run() until done(); only the thread of the event loop uses it */

	struct fr_lock lock;
	struct fr_cond changed;
	struct fr_work work; /* work.work is NULL if there is nothing to do */
	bool stop;
};

/* Waits for the next work. Returns false if the worker has to end. */
static bool take_work(struct fr_worker *w, struct fr_work *ret)
{
	fr_lock(&w->lock);
	while (!w->work.work && !w->stop)
		fr_cond_wait(&w->changed, &w->lock);
	*ret = w->work;
	w->work.work = NULL;
	fr_unlock(&w->lock);
	return ret->work != NULL;
}

static void *worker_main(void *arg)
{
	struct fr_worker *w = arg;
	const uint64_t one = 1;
	struct fr_work work;

	fr_thread_begin(w->which);
	fr_lock(&w->lock);
	w->tid = gettid();
	fr_cond_broadcast(&w->changed);
	fr_unlock(&w->lock);
	while (take_work(w, &work)) {
		work.work(work.ctx);
		(void)!write(w->done_fd, &one, sizeof(one));
	}
	return NULL;
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct fr_worker *w = ctx;
	const struct fr_work work = w->work;
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
	w->is_busy = false;
	work.done(work.ctx);
	return 0;
}

int fr_worker_new(enum fr_thread which, struct fr_worker **ret, struct fr_diag *d)
{
	struct fr_worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->which = which;
	fr_lock_init(&w->lock);
	fr_cond_init(&w->changed);
	w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->done_fd < 0 ? -errno : -pthread_create(&w->thread, NULL, worker_main, w);
	if (r < 0) {
		fr_closep(&w->done_fd);
		free(w);
		return fr_fail_errno(d, r, NULL, "cannot start a thread");
	}
	fr_lock(&w->lock);
	while (!w->tid)
		fr_cond_wait(&w->changed, &w->lock);
	fr_unlock(&w->lock);
	*ret = w;
	return 0;
}

int fr_worker_attach(struct fr_worker *w, sd_event *event)
{
	int r = sd_event_add_io(event, &w->source, w->done_fd, EPOLLIN, on_done, w);

	return r < 0 ? r : 0;
}

pid_t fr_worker_tid(const struct fr_worker *w)
{
	return w->tid;
}

int fr_worker_run(struct fr_worker *w, const struct fr_work *work)
{
	if (w->is_busy)
		return -EBUSY;
	w->is_busy = true;
	fr_lock(&w->lock);
	w->work = *work;
	fr_cond_broadcast(&w->changed);
	fr_unlock(&w->lock);
	return 0;
}

struct fr_worker *fr_worker_free(struct fr_worker *w)
{
	if (!w)
		return NULL;
	fr_lock(&w->lock);
	w->stop = true;
	fr_cond_broadcast(&w->changed);
	fr_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	sd_event_source_disable_unref(w->source);
	fr_closep(&w->done_fd);
	fr_cond_deinit(&w->changed);
	fr_lock_deinit(&w->lock);
	free(w);
	return NULL;
}
