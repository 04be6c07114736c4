// SPDX-License-Identifier: GPL-2.0-or-later
#include "trigger/arming.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <utlist.h>

#define STOP_WAIT_NS FR_NSEC_PER_SEC

struct fr_arming {
	pthread_t thread;
	pid_t tid;
	int done_fd;
	struct fr_lock lock; /* protects the members below */
	struct fr_cond changed;
	struct fr_arming_job *waiting, *running, *done;
	bool stop, ended;
	bool abandoned; /* the thread frees the structure at its end */
};

struct fr_arming_job *fr_arming_job_free(struct fr_arming_job *job)
{
	if (!job)
		return NULL;
	fr_source_close(job->source);
	fr_trigger_config_deinit(&job->config);
	free(job);
	return NULL;
}

static void free_list(struct fr_arming_job *list)
{
	struct fr_arming_job *job, *next;

	LL_FOREACH_SAFE (list, job, next)
		fr_arming_job_free(job);
}

/* Opens the source of the first waiting job. Releases the lock during the open. */
static void run_next_job(struct fr_arming *a) FR_REQUIRES(a->lock)
{
	struct fr_arming_job *job = a->running = a->waiting;
	const uint64_t one = 1;

	a->waiting = job->next;
	fr_unlock(&a->lock);
	job->code =
		fr_source_open(job->class, &job->env, &job->config, job->trigger, &job->source, &job->diag);
	fr_lock(&a->lock);
	a->running = NULL;
	if (!job->canceled) {
		LL_APPEND(a->done, job);
		job->is_done = true;
		(void)!write(a->done_fd, &one, sizeof(one));
		return;
	}
	fr_unlock(&a->lock);
	fr_arming_job_free(job);
	fr_lock(&a->lock);
}

static void arming_free(struct fr_arming *a)
{
	fr_closep(&a->done_fd);
	free_list(a->waiting);
	free_list(a->done);
	fr_cond_deinit(&a->changed);
	fr_lock_deinit(&a->lock);
	free(a);
}

static void *arming_main(void *arg)
{
	struct fr_arming *a = arg;
	bool abandoned;

	fr_thread_begin(FR_THREAD_ARMING);
	fr_lock(&a->lock);
	a->tid = gettid();
	fr_cond_broadcast(&a->changed);
	while (!a->stop)
		if (a->waiting)
			run_next_job(a);
		else
			fr_cond_wait(&a->changed, &a->lock);
	a->ended = true;
	abandoned = a->abandoned;
	fr_cond_broadcast(&a->changed);
	fr_unlock(&a->lock);
	if (abandoned)
		arming_free(a);
	return NULL;
}

int fr_arming_start(struct fr_arming **ret, struct fr_diag *d)
{
	struct fr_arming *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot start the thread that arms triggers");
	fr_lock_init(&a->lock);
	fr_cond_init(&a->changed);
	a->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = a->done_fd < 0 ? -errno : -pthread_create(&a->thread, NULL, arming_main, a);
	if (r < 0) {
		arming_free(a);
		return fr_fail_errno(d, r, NULL, "cannot start the thread that arms triggers");
	}
	fr_lock(&a->lock);
	while (!a->tid)
		fr_cond_wait(&a->changed, &a->lock);
	fr_unlock(&a->lock);
	*ret = a;
	return 0;
}

struct fr_arming *fr_arming_stop(struct fr_arming *a)
{
	const uint64_t until_ns = fr_monotonic_ns() + STOP_WAIT_NS;
	pthread_t thread;
	bool ended;

	if (!a)
		return NULL;
	thread = a->thread;
	fr_lock(&a->lock);
	a->stop = true;
	if (a->running)
		a->running->canceled = true;
	fr_cond_broadcast(&a->changed);
	while (!a->ended && fr_cond_wait_until(&a->changed, &a->lock, until_ns))
		;
	ended = a->ended;
	a->abandoned = !ended;
	fr_unlock(&a->lock);
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

	fr_thread_assert(FR_THREAD_MAIN);
	if (!job || fr_trigger_config_copy(&job->config, config) < 0) {
		free(job);
		return NULL;
	}
	job->class = class;
	job->env = *env;
	job->trigger = trigger;
	job->arming = a;
	fr_lock(&a->lock);
	LL_APPEND(a->waiting, job);
	fr_cond_broadcast(&a->changed);
	fr_unlock(&a->lock);
	return job;
}

struct fr_arming_job *fr_arming_take(struct fr_arming *a)
{
	struct fr_arming_job *job;
	uint64_t count;

	fr_thread_assert(FR_THREAD_MAIN);
	fr_lock(&a->lock);
	job = a->done;
	if (job)
		a->done = job->next;
	if (!a->done)
		(void)!read(a->done_fd, &count, sizeof(count));
	fr_unlock(&a->lock);
	return job;
}

void fr_arming_cancel(struct fr_arming_job *job)
{
	struct fr_arming *a = job->arming;
	bool is_running;

	fr_thread_assert(FR_THREAD_MAIN);
	fr_lock(&a->lock);
	is_running = a->running == job;
	if (is_running)
		job->canceled = true;
	else if (job->is_done)
		LL_DELETE(a->done, job);
	else
		LL_DELETE(a->waiting, job);
	fr_unlock(&a->lock);
	if (!is_running)
		fr_arming_job_free(job);
}

bool fr_arming_is_waiting(const struct fr_arming_job *job, char ret[static FR_ARMING_NAME_SIZE])
{
	struct fr_arming *a = job->arming;
	bool waits;

	fr_lock(&a->lock);
	waits = a->running && a->running != job;
	if (waits)
		snprintf(ret, FR_ARMING_NAME_SIZE, "%s", a->running->config.name);
	fr_unlock(&a->lock);
	return waits;
}
