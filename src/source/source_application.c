// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Application=: programs that detect their own anomalies (include/flightrec/trigger.h).
 *
 *   datagram ─► the shared socket ─► TRIGGER= ─┬► source "checkout"
 *                                              └► source "application": any other name
 *
 * The sender does not wait: if the socket's queue is full (net.unix.max_dgram_qlen, by default 10 datagrams),
 * send() fails at once. So the recorder limits a flood of datagrams by reading the socket at a limited rate.
 */
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
#include <sys/socket.h>
#include <utlist.h>

/* The rate limit: at most SLICE_DATAGRAMS are read in each time of SLICE_NS. So one iteration of the event
   loop also reads at most SLICE_DATAGRAMS. */
#define SLICE_DATAGRAMS 32
#define SLICE_NS (10 * FR_NSEC_PER_MSEC)
#define AGE_MAX_NS (60 * FR_NSEC_PER_SEC) /* an older TIME= is ignored */

#define BUILT_IN "application"

struct application {
	struct fr_source source;
	struct shared *shared;
	struct application *next;
	uint64_t quiet_until_ns;
};

/* The socket. All sources with the same environment share the socket. */
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

/* All sockets. Only the main thread uses this list. */
static struct shared *all_shared;

static struct application *find_source(const struct shared *shared, const char *name)
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
	/* The sender's clock can differ, for example in a time namespace. So a TIME= in the future, or too
	   long ago, is ignored. */
	if (d->time_ns && d->time_ns <= now && now - d->time_ns <= AGE_MAX_NS)
		ret->time_ns = d->time_ns;
	if (pid && is_thread_of(pid, d->tid))
		ret->tid = d->tid;
	memcpy(ret->reason, d->reason, sizeof(ret->reason));
	if (!*ret->reason)
		snprintf(ret->reason, sizeof(ret->reason), "reported by an application");
	if (strcmp(a->source.config->name, d->trigger) != 0)
		memcpy(ret->detail, d->trigger, sizeof(d->trigger));
}

static void handle_datagram(struct application *a, const struct fr_datagram *d, pid_t pid)
{
	struct fr_source_stats *stats = &a->source.stats;
	uint64_t now = fr_monotonic_ns();
	struct fr_cause cause;

	stats->last = d->value;
	stats->last_ns = now;
	stats->unit = d->unit;
	stats->threshold = d->threshold;
	if (d->value < d->threshold)
		return;
	/* Check the cool-down first: the steps below can read /proc, which costs more than
	   all other steps. */
	if (now < a->quiet_until_ns) {
		stats->fired++;
		stats->cooled++;
		return;
	}
	make_cause(a, d, pid, now, &cause);
	if (!fr_source_matches(a->source.config, &cause))
		return;
	stats->fired++;
	a->quiet_until_ns = now + fr_source_cooldown_ns(a->source.config);
	fr_source_fire(&a->source, &cause);
}

/* Receives one datagram and the pid of its sender (0: the sender is in another pid namespace). Returns
   the length; -EMSGSIZE if the datagram is too long; -EAGAIN if there is no datagram; or another
   negative errno. */
static ssize_t receive_datagram(int fd, void *data, size_t size, pid_t *ret_pid)
{
	/* The kernel writes the sender's credentials first. The credentials fill this buffer. If the sender
	   also passes descriptors, there is no room for the descriptors, and the kernel drops them. */
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {data, size};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct ucred cred = {0};

	if (n < 0)
		return -errno;
	if (CMSG_FIRSTHDR(&m) && control.header.cmsg_type == SCM_CREDENTIALS &&
		control.header.cmsg_len == CMSG_LEN(sizeof(cred)))
		memcpy(&cred, CMSG_DATA(&control.header), sizeof(cred));
	*ret_pid = FR_MAX(cred.pid, 0);
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

/* Handles one datagram. Returns whether there was a datagram. */
static bool handle_next(struct shared *shared)
{
	char text[FLIGHTREC_DATAGRAM_MAX];
	struct fr_datagram d;
	struct application *a = NULL;
	pid_t pid = 0;
	ssize_t n = receive_datagram(shared->socket.fd, text, sizeof(text), &pid);

	if (n < 0 && n != -EMSGSIZE)
		return false;
	if (n >= 0 && fr_datagram_parse(text, (size_t)n, &d) == 0) {
		a = find_source(shared, d.trigger);
		a = a ? a : find_source(shared, BUILT_IN);
	}
	if (a)
		handle_datagram(a, &d, pid);
	else
		shared->bad++;
	return true;
}

/* Stops reading until the slice ends. */
static int pause_reading(struct shared *shared)
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
	while (shared->in_slice < SLICE_DATAGRAMS && handle_next(shared))
		shared->in_slice++;
	return shared->in_slice < SLICE_DATAGRAMS ? 0 : pause_reading(shared);
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
		return fr_fail(d, -EINVAL, "set Socket= in [Triggers] to a path",
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
	LL_PREPEND(all_shared, shared);
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
	if (shared->sources)
		return;
	LL_DELETE(all_shared, shared);
	shared_free(shared);
}

static int application_check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	if (strlen(config->name) >= FR_TRIGGER_NAME_SIZE)
		return fr_fail(d, -EINVAL, NULL, "the name %s is too long", config->name);
	if (config->threshold)
		return fr_fail(d, -EINVAL, "leave Threshold= out",
			"the trigger %s: each application sends its own threshold", config->name);
	return 0;
}

static int application_open(struct fr_source *s, struct fr_diag *d)
{
	struct application *a = (struct application *)s;
	int r = application_check(s->config, d);

	if (r == 0)
		r = shared_get(s->env, &a->shared, d);
	if (r < 0)
		return r;
	LL_PREPEND(a->shared->sources, a);
	return 0;
}

static void application_close(struct fr_source *s)
{
	struct application *a = (struct application *)s;

	if (!a->shared)
		return;
	LL_DELETE(a->shared->sources, a);
	/* The trigger has added the counter `bad` to its sums, so the next source "application" has to
	   begin with 0. */
	if (is_built_in(a))
		a->shared->bad = 0;
	shared_put(a->shared);
}

static void application_get_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	const struct application *a = (struct application *)s;

	/* A malformed datagram cannot be attributed to a trigger, so the trigger "application" counts all
	   malformed datagrams. */
	if (is_built_in(a))
		ret->bad = a->shared->bad;
}

const struct fr_source_class fr_source_application = {.name = "application",
	.size = sizeof(struct application),
	.open = application_open,
	.close = application_close,
	.get_stats = application_get_stats,
	.check = application_check};
