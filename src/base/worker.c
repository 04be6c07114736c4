// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/worker.h"
#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct fr_worker {
	struct fr_worker_config config;
	pthread_t thread;
	bool has_thread;
	int done_fd;
	sd_event_source *source;
};

static void *worker_main(void *arg)
{
	struct fr_worker *w = arg;
	const uint64_t one = 1;

	fr_thread_begin(w->config.thread);
	w->config.work(w->config.ctx);
	(void)!write(w->done_fd, &one, sizeof(one));
	return NULL;
}

static void join(struct fr_worker *w)
{
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	w->has_thread = false;
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct fr_worker *w = ctx;

	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	join(w);
	w->config.done(w->config.ctx);
	return 0;
}

int fr_worker_start(
	sd_event *event, const struct fr_worker_config *config, struct fr_worker **ret, struct fr_diag *d)
{
	struct fr_worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->config = *config;
	w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->done_fd < 0 ? -errno : sd_event_add_io(event, &w->source, w->done_fd, EPOLLIN, on_done, w);
	if (r >= 0)
		r = -pthread_create(&w->thread, NULL, worker_main, w);
	if (r < 0) {
		fr_worker_free(w);
		return fr_fail_errno(d, r, NULL, "cannot start a thread");
	}
	w->has_thread = true;
	*ret = w;
	return 0;
}

struct fr_worker *fr_worker_free(struct fr_worker *w)
{
	if (!w)
		return NULL;
	join(w);
	sd_event_source_disable_unref(w->source);
	fr_closep(&w->done_fd);
	free(w);
	return NULL;
}
