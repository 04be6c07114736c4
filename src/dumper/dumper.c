// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/dumper_private.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#define TIDY_PERIOD_NS (3600 * FR_NSEC_PER_SEC)

struct fr_dumper_settings fr_dumper_settings(struct fr_dumper *p)
{
	struct fr_dumper_settings settings;

	fr_lock(&p->lock);
	settings = p->settings;
	fr_unlock(&p->lock);
	return settings;
}

/* Takes the first job whose `ready_ns` has passed. If the dumper stops, takes the first job without regard to
   `ready_ns`. Returns NULL if there is no such job. */
static struct fr_dump_job *take_ready(struct fr_dumper *p) FR_REQUIRES(p->lock)
{
	const uint64_t now_ns = fr_monotonic_ns();
	struct fr_dump_job *job;

	TAILQ_FOREACH (job, &p->waiting, link)
		if (p->stop || job->ready_ns <= now_ns)
			break;
	if (job)
		TAILQ_REMOVE(&p->waiting, job, link);
	return job;
}

/* Returns the time at which the thread has to wake up, if nobody wakes it earlier. */
static uint64_t next_time(const struct fr_dumper *p) FR_REQUIRES(p->lock)
{
	uint64_t next_ns = p->tidied_ns + TIDY_PERIOD_NS;
	const struct fr_dump_job *job;

	TAILQ_FOREACH (job, &p->waiting, link)
		next_ns = FR_MIN(next_ns, job->ready_ns);
	if (p->kept.job)
		next_ns = FR_MIN(next_ns, p->retry_now ? 0 : p->kept.retry_ns);
	return next_ns;
}

static void wait_for_work(struct fr_dumper *p) FR_REQUIRES(p->lock)
{
	const uint64_t next_ns = next_time(p);

	if (next_ns > fr_monotonic_ns())
		(void)fr_cond_wait_until(&p->changed, &p->lock, next_ns);
}

void fr_dumper_finish(struct fr_dumper *p, struct fr_dump_job *job, bool counted)
{
	const uint64_t one = 1;

	fr_lock(&p->lock);
	TAILQ_INSERT_TAIL(&p->done, job, link);
	if (counted)
		p->queued--;
	if (job->kind == FR_JOB_VACUUM || job->kind == FR_JOB_REMOVE ||
		(job->kind == FR_JOB_DUMP && job->code >= 0 && job->outcome != FR_OUTCOME_RESCUED))
		p->retry_now = true; /* this job can have made room on the disk for the kept dump */
	(void)!write(p->done_fd, &one, sizeof(one));
	fr_unlock(&p->lock);
}

static void retry_kept(struct fr_dumper *p, bool last)
{
	struct fr_dump_job *job = fr_kept_retry(p, last);

	if (job)
		fr_dumper_finish(p, job, false);
}

static void run_jobs(struct fr_dumper *p)
{
	struct fr_dump_job *job;

	fr_lock(&p->lock);
	for (;;) {
		bool retry;

		job = take_ready(p);
		if (!job && p->stop)
			break;
		if (!job)
			wait_for_work(p);
		p->running_id = job ? job->id : 0;
		retry = !job && p->kept.job && (p->retry_now || fr_monotonic_ns() >= p->kept.retry_ns);
		if (retry)
			p->retry_now = false;
		fr_unlock(&p->lock);
		if (job) {
			fr_dumper_run(p, job);
			fr_dumper_finish(p, job, true);
		} else if (retry) {
			retry_kept(p, false);
		}
		if (!job && fr_monotonic_ns() >= p->tidied_ns + TIDY_PERIOD_NS)
			fr_dumper_tidy(p, false);
		fr_lock(&p->lock);
	}
	fr_unlock(&p->lock);
	retry_kept(p, true);
}

static void *dumper_main(void *arg)
{
	struct fr_dumper *p = arg;

	fr_thread_begin(FR_THREAD_DUMPER);
	fr_lock(&p->lock);
	p->tid = gettid();
	fr_cond_broadcast(&p->changed);
	fr_unlock(&p->lock);
	fr_dumper_tidy(p, true);
	run_jobs(p);
	return NULL;
}

int fr_dumper_start(const struct fr_dumper_config *config, struct fr_dumper **ret, struct fr_diag *d)
{
	struct fr_dumper *p = calloc(1, sizeof(*p));
	int code;

	if (!p)
		return -ENOMEM;
	p->config = *config;
	p->settings = config->settings;
	TAILQ_INIT(&p->waiting);
	TAILQ_INIT(&p->done);
	fr_lock_init(&p->lock);
	fr_cond_init(&p->changed);
	p->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	code = p->done_fd < 0 ? -errno : fr_session_copy(config->session, &p->session);
	p->directory = strdup(config->directory);
	if (code == 0)
		code = p->directory ? -pthread_create(&p->thread, NULL, dumper_main, p) : -ENOMEM;
	if (code < 0) {
		fr_dumper_free(p);
		return fr_fail_errno(d, code, NULL, "cannot start the dumper thread");
	}
	fr_lock(&p->lock);
	while (!p->tid)
		fr_cond_wait(&p->changed, &p->lock);
	fr_unlock(&p->lock);
	*ret = p;
	return 0;
}

void fr_dumper_stop(struct fr_dumper *p)
{
	if (!p || p->stop)
		return;
	fr_lock(&p->lock);
	p->stop = true;
	fr_cond_broadcast(&p->changed);
	fr_unlock(&p->lock);
	pthread_join(p->thread, NULL);
}

struct fr_dumper *fr_dumper_free(struct fr_dumper *p)
{
	if (!p)
		return NULL;
	fr_closep(&p->done_fd);
	free(p->directory);
	fr_session_deinit(&p->session);
	fr_session_deinit(&p->session_next);
	fr_cond_deinit(&p->changed);
	fr_lock_deinit(&p->lock);
	free(p);
	return NULL;
}

pid_t fr_dumper_tid(const struct fr_dumper *p)
{
	return p->tid;
}

int fr_dumper_done_fd(const struct fr_dumper *p)
{
	return p->done_fd;
}

int fr_dumper_set_session(struct fr_dumper *p, const struct fr_session *s, bool no_rounds)
{
	struct fr_session copy = {0}, old;
	int r = fr_session_copy(s, &copy);

	if (r < 0)
		return r;
	fr_lock(&p->lock);
	old = p->session_next;
	p->session_next = copy;
	p->no_rounds |= no_rounds;
	fr_unlock(&p->lock);
	fr_session_deinit(&old);
	return 0;
}

void fr_dumper_set(struct fr_dumper *p, const struct fr_dumper_settings *settings)
{
	fr_lock(&p->lock);
	p->settings = *settings;
	fr_unlock(&p->lock);
}

struct fr_dump_job *fr_dumper_reap(struct fr_dumper *p)
{
	struct fr_dump_job *job;

	fr_lock(&p->lock);
	job = TAILQ_FIRST(&p->done);
	if (job)
		TAILQ_REMOVE(&p->done, job, link);
	fr_unlock(&p->lock);
	return job;
}

void fr_dumper_stats(struct fr_dumper *p, struct fr_dumper_stats *ret)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const struct fr_dump_job *job;

	fr_lock(&p->lock);
	*ret = p->stats;
	ret->queued = p->queued;
	TAILQ_FOREACH (job, &p->waiting, link)
		ret->waiting_post += job->ready_ns > now_ns;
	fr_unlock(&p->lock);
}
