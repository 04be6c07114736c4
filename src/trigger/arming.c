// SPDX-License-Identifier: GPL-2.0-or-later
#include "trigger/arming.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STOP_WAIT_NS FR_NSEC_PER_SEC

struct fr_arming {
	pthread_t thread;
	pid_t tid;
	int done_fd;
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t changed;
	struct fr_arming_job *waiting, *running, *done;
	bool stop, ended;
	bool abandoned; /* the thread frees all of it */
};

/* Lock held. */
static void append(struct fr_arming_job **list, struct fr_arming_job *job)
{
	while (*list)
		list = &(*list)->next;
	job->next = NULL;
	*list = job;
}

/* Lock held. */
static bool take_out(struct fr_arming_job **list, const struct fr_arming_job *job)
{
	while (*list && *list != job)
		list = &(*list)->next;
	if (!*list)
		return false;
	*list = job->next;
	return true;
}

struct fr_arming_job *fr_arming_job_free(struct fr_arming_job *job)
{
	if (!job)
		return NULL;
	if (job->source)
		job->class->close(job->source);
	fr_trigger_config_deinit(&job->config);
	free(job);
	return NULL;
}

static void free_list(struct fr_arming_job *list)
{
	while (list) {
		struct fr_arming_job *job = list;

		list = job->next;
		fr_arming_job_free(job);
	}
}

static void run(struct fr_arming_job *job)
{
	job->code = job->class->open(&job->env, &job->config, job->trigger, &job->source, &job->diag);
	if (job->code < 0)
		job->source = NULL;
}

/* Lock held, but while the job is done. */
static void work(struct fr_arming *a)
{
	struct fr_arming_job *job = a->running = a->waiting;
	const uint64_t one = 1;

	a->waiting = job->next;
	pthread_mutex_unlock(&a->lock);
	run(job);
	pthread_mutex_lock(&a->lock);
	a->running = NULL;
	if (!job->cancelled) {
		append(&a->done, job);
		(void)!write(a->done_fd, &one, sizeof(one));
		return;
	}
	pthread_mutex_unlock(&a->lock);
	fr_arming_job_free(job);
	pthread_mutex_lock(&a->lock);
}

static void arming_free(struct fr_arming *a)
{
	if (a->done_fd >= 0)
		close(a->done_fd);
	free_list(a->waiting);
	free_list(a->done);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static void *arming_main(void *arg)
{
	struct fr_arming *a = arg;
	bool abandoned;

	pthread_setname_np(pthread_self(), "fr-arming");
	pthread_mutex_lock(&a->lock);
	a->tid = gettid();
	pthread_cond_broadcast(&a->changed);
	while (!a->stop)
		if (a->waiting)
			work(a);
		else
			pthread_cond_wait(&a->changed, &a->lock);
	a->ended = true;
	abandoned = a->abandoned;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	if (abandoned)
		arming_free(a);
	return NULL;
}

/* Waits for CLOCK_MONOTONIC. */
static void init_changed(struct fr_arming *a)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->changed, &attr);
	pthread_condattr_destroy(&attr);
}

int fr_arming_start(struct fr_arming **ret, struct fr_diag *d)
{
	struct fr_arming *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot start the thread that arms triggers");
	pthread_mutex_init(&a->lock, NULL);
	init_changed(a);
	a->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = a->done_fd < 0 ? -errno : -pthread_create(&a->thread, NULL, arming_main, a);
	if (r < 0) {
		arming_free(a);
		return fr_fail_errno(d, r, NULL, "cannot start the thread that arms triggers");
	}
	pthread_mutex_lock(&a->lock);
	while (!a->tid)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	*ret = a;
	return 0;
}

struct fr_arming *fr_arming_stop(struct fr_arming *a)
{
	const uint64_t until = fr_monotonic_ns() + STOP_WAIT_NS;
	const struct timespec ts = {(time_t)(until / FR_NSEC_PER_SEC), (long)(until % FR_NSEC_PER_SEC)};
	pthread_t thread;
	bool ended;

	if (!a)
		return NULL;
	thread = a->thread;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	if (a->running)
		a->running->cancelled = true;
	pthread_cond_broadcast(&a->changed);
	while (!a->ended && pthread_cond_timedwait(&a->changed, &a->lock, &ts) == 0)
		;
	ended = a->ended;
	a->abandoned = !ended;
	pthread_mutex_unlock(&a->lock);
	if (ended) {
		pthread_join(thread, NULL);
		arming_free(a);
	} else {
		pthread_detach(thread);
	}
	return NULL;
}

pid_t fr_arming_tid(const struct fr_arming *a)
{
	return a->tid;
}

int fr_arming_done_fd(const struct fr_arming *a)
{
	return a->done_fd;
}

struct fr_arming_job *fr_arming_submit(struct fr_arming *a, const struct fr_source_class *class,
	const struct fr_source_env *env, const struct fr_trigger_config *config, void *trigger)
{
	struct fr_arming_job *job = calloc(1, sizeof(*job));

	if (!job || fr_trigger_config_copy(&job->config, config) < 0) {
		free(job);
		return NULL;
	}
	job->class = class;
	job->env = *env;
	job->trigger = trigger;
	job->arming = a;
	pthread_mutex_lock(&a->lock);
	append(&a->waiting, job);
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	return job;
}

struct fr_arming_job *fr_arming_take(struct fr_arming *a)
{
	struct fr_arming_job *job;
	uint64_t count;

	pthread_mutex_lock(&a->lock);
	job = a->done;
	if (job)
		a->done = job->next;
	if (!a->done)
		(void)!read(a->done_fd, &count, sizeof(count));
	pthread_mutex_unlock(&a->lock);
	return job;
}

void fr_arming_cancel(struct fr_arming_job *job)
{
	struct fr_arming *a = job->arming;
	bool ours = false;

	pthread_mutex_lock(&a->lock);
	if (a->running == job)
		job->cancelled = true;
	else
		ours = take_out(&a->waiting, job) || take_out(&a->done, job);
	pthread_mutex_unlock(&a->lock);
	if (ours)
		fr_arming_job_free(job);
}

bool fr_arming_waits(const struct fr_arming_job *job, char ret[static FR_ARMING_NAME_SIZE])
{
	struct fr_arming *a = job->arming;
	bool waits;

	pthread_mutex_lock(&a->lock);
	waits = a->running && a->running != job;
	if (waits)
		snprintf(ret, FR_ARMING_NAME_SIZE, "%s", a->running->config.name);
	pthread_mutex_unlock(&a->lock);
	return waits;
}
