// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/collector.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define QUEUE_MAX 16u
#define NICE 10
/* fr_collector_stop() waits for the queued dumps for about this time. */
#define STOP_NS (10 * FR_NSEC_PER_SEC)

struct fr_collector {
	struct fr_object_cache *cache;
	struct fr_object_cache_config config;
	pthread_t thread;
	pid_t tid;

	struct fr_lock lock;
	struct fr_cond changed;
	char names[QUEUE_MAX][64];
	unsigned first, n;
	bool stop;
	atomic_ullong give_up_ns; /* after this time, skip the rest of the work; 0: no limit */
	struct fr_collector_stats stats;
};

static void publish_stats(struct fr_collector *c, uint64_t missed, int code)
{
	fr_lock(&c->lock);
	fr_object_cache_stats(c->cache, &c->stats.cache);
	c->stats.missed += missed;
	if (code < 0)
		c->stats.last_errno = -code;
	fr_unlock(&c->lock);
}

static bool is_too_late(struct fr_collector *c)
{
	uint64_t until = atomic_load(&c->give_up_ns);

	return until && fr_monotonic_ns() > until;
}

static void keep_objects(struct fr_collector *c, const struct fr_hits *hits, const char *name)
{
	uint64_t missed = 0;
	int r, failed = 0;

	fr_object_cache_begin_dump(c->cache);
	r = hits->kernel ? fr_object_cache_add_kernel(c->cache) : 0;
	failed = r < 0 ? r : failed;
	for (size_t i = 0; i < hits->n && !is_too_late(c); i++) {
		r = fr_object_cache_add(c->cache, hits->v[i]);
		missed += r != 0;
		failed = r < 0 ? r : failed;
	}
	publish_stats(c, missed, failed);
	if (failed < 0)
		fr_log(LOG_WARNING, "not all object files of %s could be kept: %s", name, strerror(-failed));
	fr_log(LOG_DEBUG, "%s: samples in %zu object files, %llu of them could not be kept", name, hits->n,
		(unsigned long long)missed);
}

/* If the recorder's directory was replaced, opens the cache in the new directory. If the cache cannot be
   opened, the copies fail, too, and the thread reports the error of a copy. */
static void follow_directory(struct fr_collector *c)
{
	struct fr_object_cache *next;

	if (fr_object_cache_is_in_place(c->cache) || fr_object_cache_open(&c->config, &next, NULL) < 0)
		return;
	fr_object_cache_free(c->cache);
	c->cache = next;
}

static void collect_dump(struct fr_collector *c, const char *name)
{
	struct fr_hits *hits = NULL;
	struct fr_diag d = {0};
	char path[128];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", c->config.dirfd, name);
	if (access(path, F_OK) < 0 || is_too_late(c))
		return; /* the dump was removed, or there is no time left */
	follow_directory(c);
	r = fr_hits_read(path, &hits, &d);
	if (r < 0) {
		fr_log_diag(LOG_WARNING, &d, r);
		return;
	}
	keep_objects(c, hits, name);
	fr_hits_free(hits);
}

static void lower_priority(void)
{
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

static void *collector_main(void *arg)
{
	struct fr_collector *c = arg;
	char name[sizeof(c->names[0])];

	fr_thread_begin(FR_THREAD_COLLECTOR);
	lower_priority();
	fr_lock(&c->lock);
	c->tid = gettid();
	fr_cond_broadcast(&c->changed);
	for (;;) {
		while (c->n == 0 && !c->stop)
			fr_cond_wait(&c->changed, &c->lock);
		if (c->n == 0)
			break;
		strcpy(name, c->names[c->first]);
		c->first = (c->first + 1) % QUEUE_MAX;
		c->n--;
		fr_unlock(&c->lock);
		collect_dump(c, name);
		fr_lock(&c->lock);
	}
	fr_unlock(&c->lock);
	return NULL;
}

static struct fr_collector *collector_free(struct fr_collector *c)
{
	fr_object_cache_free(c->cache);
	fr_cond_deinit(&c->changed);
	fr_lock_deinit(&c->lock);
	free(c);
	return NULL;
}

int fr_collector_start(
	const struct fr_object_cache_config *config, struct fr_collector **ret, struct fr_diag *d)
{
	struct fr_collector *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->config = *config;
	fr_lock_init(&c->lock);
	fr_cond_init(&c->changed);
	r = fr_object_cache_open(config, &c->cache, d);
	if (r == 0) {
		fr_object_cache_stats(c->cache, &c->stats.cache);
		r = -pthread_create(&c->thread, NULL, collector_main, c);
	}
	if (r < 0) {
		collector_free(c);
		return fr_fail_errno(d, r, "Set CacheObjects=no, or make more memory free; then restart.",
			"cannot start the thread that keeps object files");
	}
	fr_lock(&c->lock);
	while (!c->tid)
		fr_cond_wait(&c->changed, &c->lock);
	fr_unlock(&c->lock);
	*ret = c;
	return 0;
}

struct fr_collector *fr_collector_stop(struct fr_collector *c)
{
	if (!c)
		return NULL;
	fr_lock(&c->lock);
	c->stop = true;
	atomic_store(&c->give_up_ns, fr_monotonic_ns() + STOP_NS);
	fr_cond_broadcast(&c->changed);
	fr_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	return collector_free(c);
}

pid_t fr_collector_tid(const struct fr_collector *c)
{
	return c->tid;
}

void fr_collector_submit(struct fr_collector *c, const char *name)
{
	if (!c)
		return;
	fr_lock(&c->lock);
	if (c->n == QUEUE_MAX) {
		c->stats.dropped++;
	} else {
		snprintf(c->names[(c->first + c->n++) % QUEUE_MAX], sizeof(c->names[0]), "%s", name);
		fr_cond_broadcast(&c->changed);
	}
	fr_unlock(&c->lock);
}

void fr_collector_stats(struct fr_collector *c, struct fr_collector_stats *ret)
{
	fr_lock(&c->lock);
	*ret = c->stats;
	fr_unlock(&c->lock);
}
