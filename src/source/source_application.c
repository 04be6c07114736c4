// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Application=: programs that say themselves that something went wrong (include/flightrec/trigger.h).
 *
 *   datagram ─► the one socket of all ─► TRIGGER= ─┬► source "checkout"
 *                                                  └► source "application": what nobody else is named by
 *
 * Who sends, does not wait: what the socket's queue has no room for (net.unix.max_dgram_qlen, 10) the sender
 * is told at once. So a flood is met by not reading more of it than is cheap.
 */
#include "source/application_socket.h"
#include "source/datagram.h"
#include "source/source.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/socket_file.h"
#include "flightrec/trigger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

/* No more than so many in so long, and so in one iteration of the loop. */
#define SLICE_DATAGRAMS 32
#define SLICE_NS (10 * FR_NSEC_PER_MSEC)
#define AGE_MAX_NS (60 * FR_NSEC_PER_SEC)

#define BUILT_IN "application"

struct application {
	struct fr_source source;
	struct shared *shared;
	struct application *next;
	uint64_t quiet_until_ns;
	struct fr_source_stats stats;
};

/* Of all sources with one environment. */
struct shared {
	const struct fr_source_env *env;
	struct fr_socket_file socket;
	sd_event_source *io, *timer;
	struct application *sources;
	uint64_t slice_end_ns;
	unsigned in_slice;
	uint64_t bad;
	struct shared *next;
};

/* Main thread. */
static struct shared *all_shared;

static struct application *find(const struct shared *shared, const char *name)
{
	for (struct application *a = shared->sources; a; a = a->next)
		if (strcmp(a->source.config->name, name) == 0)
			return a;
	return NULL;
}

static bool is_thread_of(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	return tid > 0 && (tid == pid || access(path, F_OK) == 0);
}

static void make_cause(const struct application *a, const struct fr_datagram *d, pid_t pid, uint64_t now,
	struct fr_cause *ret)
{
	*ret = (struct fr_cause){.value = d->value,
		.threshold = d->threshold,
		.unit = d->unit,
		.time_ns = now,
		.pid = pid,
		.cpu = -1};
	/* Of a time namespace of its own, for one, it has another clock. */
	if (d->time_ns && d->time_ns <= now && now - d->time_ns <= AGE_MAX_NS)
		ret->time_ns = d->time_ns;
	if (pid && is_thread_of(pid, d->tid))
		ret->tid = d->tid;
	memcpy(ret->reason, d->reason, sizeof(ret->reason));
	if (!*ret->reason)
		snprintf(ret->reason, sizeof(ret->reason), "told by an application");
	if (strcmp(a->source.config->name, d->trigger) != 0)
		memcpy(ret->detail, d->trigger, sizeof(d->trigger));
}

static void take(struct application *a, const struct fr_datagram *d, pid_t pid)
{
	const struct fr_source_env *env = a->source.env;
	uint64_t now = fr_monotonic_ns();
	struct fr_cause cause;

	a->stats.last = d->value;
	a->stats.last_ns = now;
	a->stats.unit = d->unit;
	a->stats.threshold = d->threshold;
	if (d->value < d->threshold)
		return;
	/* Before a look at who it is, which costs more than all else. */
	if (now < a->quiet_until_ns) {
		a->stats.fired++;
		a->stats.cooled++;
		return;
	}
	make_cause(a, d, pid, now, &cause);
	if (!fr_source_wants(a->source.config, &cause))
		return;
	a->stats.fired++;
	a->quiet_until_ns = now + fr_source_cooldown_ns(a->source.config);
	env->fire(env->ctx, a->source.trigger, &cause);
}

/* Whether there was one. */
static bool receive(struct shared *shared)
{
	char text[FLIGHTREC_DATAGRAM_MAX];
	struct fr_datagram d;
	struct application *a;
	pid_t pid;
	ssize_t n = fr_application_socket_receive(shared->socket.fd, text, sizeof(text), &pid);

	if (n < 0 && n != -EMSGSIZE)
		return false;
	if (n < 0 || fr_datagram_parse(text, (size_t)n, &d) < 0) {
		shared->bad++;
		return true;
	}
	a = find(shared, d.trigger);
	if (!a)
		a = find(shared, BUILT_IN);
	if (a)
		take(a, &d, pid);
	else
		shared->bad++;
	return true;
}

/* No more until the slice has ended. */
static int rest(struct shared *shared)
{
	int r = sd_event_source_set_enabled(shared->io, SD_EVENT_OFF);

	if (r >= 0)
		r = sd_event_source_set_time(shared->timer, shared->slice_end_ns / FR_NSEC_PER_USEC + 1);
	return r < 0 ? r : sd_event_source_set_enabled(shared->timer, SD_EVENT_ONESHOT);
}

static int on_time(sd_event_source *e, uint64_t usec, void *userdata)
{
	struct shared *shared = userdata;

	return sd_event_source_set_enabled(shared->io, SD_EVENT_ON);
}

static int on_datagram(sd_event_source *e, int fd, uint32_t revents, void *userdata)
{
	struct shared *shared = userdata;
	uint64_t now = fr_monotonic_ns();

	if (now >= shared->slice_end_ns) {
		shared->slice_end_ns = now + SLICE_NS;
		shared->in_slice = 0;
	}
	while (shared->in_slice < SLICE_DATAGRAMS && receive(shared))
		shared->in_slice++;
	return shared->in_slice < SLICE_DATAGRAMS ? 0 : rest(shared);
}

static void shared_free(struct shared *shared)
{
	sd_event_source_disable_unref(shared->io);
	sd_event_source_disable_unref(shared->timer);
	fr_socket_file_close(&shared->socket);
	free(shared);
}

static int shared_new(const struct fr_source_env *env, struct shared **ret, struct fr_diag *d)
{
	const struct fr_socket_file_config file = {
		.path = env->application_socket,
		.type = SOCK_DGRAM,
		.gid = env->gid,
		.what = "applications' socket",
		.key = "Socket= in [Triggers]",
	};
	struct shared *shared;
	int r;

	if (!env->application_socket || !*env->application_socket)
		return fr_fail(d, -EINVAL, "give a path with Socket= in [Triggers]",
			"there is no socket for applications: Socket= is empty");
	shared = calloc(1, sizeof(*shared));
	if (!shared)
		return -ENOMEM;
	shared->env = env;
	shared->socket.fd = -1;
	r = fr_socket_file_open(&file, &shared->socket, d);
	if (r == 0)
		r = sd_event_add_io(env->event, &shared->io, shared->socket.fd, EPOLLIN, on_datagram, shared);
	if (r >= 0)
		r = sd_event_add_time(env->event, &shared->timer, CLOCK_MONOTONIC, 0, 1000, on_time, shared);
	if (r >= 0)
		r = sd_event_source_set_enabled(shared->timer, SD_EVENT_OFF);
	if (r < 0) {
		shared_free(shared);
		return fr_fail_errno(d, r, NULL, "cannot listen to applications");
	}
	shared->next = all_shared;
	all_shared = shared;
	*ret = shared;
	return 0;
}

static int shared_get(const struct fr_source_env *env, struct shared **ret, struct fr_diag *d)
{
	for (*ret = all_shared; *ret; *ret = (*ret)->next)
		if ((*ret)->env == env)
			return 0;
	return shared_new(env, ret, d);
}

static bool is_built_in(const struct application *a)
{
	return strcmp(a->source.config->name, BUILT_IN) == 0;
}

static void shared_put(struct shared *shared)
{
	struct shared **at = &all_shared;

	if (shared->sources)
		return;
	while (*at != shared)
		at = &(*at)->next;
	*at = shared->next;
	shared_free(shared);
}

static int check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	if (strlen(config->name) >= FR_TRIGGER_NAME_SIZE)
		return fr_fail(d, -EINVAL, NULL, "the name %s is too long", config->name);
	if (config->threshold)
		return fr_fail(d, -EINVAL, "leave Threshold= out",
			"the trigger %s: the application itself says what the threshold is", config->name);
	return 0;
}

static int application_open(const struct fr_source_env *env, const struct fr_trigger_config *config,
	void *trigger, struct fr_source **ret, struct fr_diag *d)
{
	struct application *a;
	int r = check(config, d);

	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	r = shared_get(env, &a->shared, d);
	if (r < 0) {
		free(a);
		return r;
	}
	a->source = (struct fr_source){&fr_source_application, env, config, trigger};
	a->next = a->shared->sources;
	a->shared->sources = a;
	*ret = &a->source;
	return 0;
}

static void application_close(struct fr_source *s)
{
	struct application *a = (struct application *)s, **at = &a->shared->sources;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	/* Who closes it has asked for them: the next one begins at 0. */
	if (is_built_in(a))
		a->shared->bad = 0;
	shared_put(a->shared);
	free(a);
}

static void application_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	const struct application *a = (struct application *)s;

	*ret = a->stats;
	/* Whom a datagram is for that cannot be read, nobody knows. */
	if (is_built_in(a))
		ret->bad = a->shared->bad;
}

const struct fr_source_class fr_source_application = {.name = "application",
	.open = application_open,
	.close = application_close,
	.stats = application_stats,
	.check = check};
