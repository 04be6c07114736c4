// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event=: fires for each occurrence of a perf event, or when the event occurs too often.
 *
 * Without Threshold=, each occurrence is an anomaly. The kernel writes a record of each occurrence into a
 * small kernel ring, and the first record wakes the source. After that, the source does not poll until its
 * cool-down ends. So a storm costs only the time to fill the ring. At the end of the cool-down, the source
 * reads the other records, and counts them as cooled.
 *
 *   ── × ─────── × × ×× ─────── × ──►  fired, cooled … cooled, fired
 *      ├─ cool-down: not polled ─┤
 *
 * With Threshold=, the event only counts. A slice is half of Interval=. At the end of each slice, the source
 * reads the counters of all CPUs, and adds the counts of the last two slices. So the source also sees a burst
 * across the border of two slices. docs/design/72 explains why the source does not use a sample period.
 *
 *   │ slice │ slice │ slice │
 *   └── interval ───┘
 *           └── interval ───┘
 */
#include "source/event_watch.h"
#include "source/source.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "capture/perf_open.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define INTERVAL_DEFAULT_NS FR_NSEC_PER_SEC
#define INTERVAL_MIN_NS (10 * FR_NSEC_PER_MSEC)
#define INTERVAL_MAX_NS (3600 * FR_NSEC_PER_SEC)
#define OWN_THREADS_MAX 64

struct event {
	struct fr_source source;
	struct fr_event_list list; /* holds one event */
	struct fr_event_watch watch;
	sd_event_source *io, *timer;
	uint64_t interval_ns, threshold; /* both 0: each occurrence is an anomaly */
	uint64_t slice_count;		 /* occurrences in the previous slice */
	uint64_t quiet_until_ns;
};

/* Returns whether the event has single occurrences. A hardware counter or a clock has no single occurrences,
   because it counts all the time. */
static bool has_occurrences(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_TRACEPOINT || (a->type == PERF_TYPE_SOFTWARE && !fr_event_is_clock(a));
}

static int parse_interval(
	const struct fr_trigger_config *config, uint64_t *ret_threshold, uint64_t *ret_ns, struct fr_diag *d)
{
	*ret_threshold = *ret_ns = 0;
	if (!config->threshold) {
		if (config->interval_ns == FR_TRIGGER_UNSET)
			return 0;
		return fr_fail(d, -EINVAL, "add Threshold=, or leave Interval= out",
			"the trigger %s: Interval= has no effect without Threshold=", config->name);
	}
	if (fr_threshold_parse(config->threshold, FR_CAUSE_COUNT, ret_threshold) < 0 || !*ret_threshold)
		return fr_fail(d, -EINVAL, "write a number of occurrences, for example Threshold=1000",
			"the trigger %s: Threshold=%s is not a threshold for an event", config->name,
			config->threshold);
	*ret_ns = config->interval_ns == FR_TRIGGER_UNSET ? INTERVAL_DEFAULT_NS : config->interval_ns;
	if (*ret_ns < INTERVAL_MIN_NS || *ret_ns > INTERVAL_MAX_NS)
		return fr_fail(d, -EINVAL, "set Interval= to 10ms to 1h",
			"the trigger %s: Interval= is out of its range", config->name);
	return 0;
}

static int check_comm(const struct fr_trigger_config *config, const struct fr_event *e, struct fr_diag *d)
{
	if (!config->comm)
		return 0;
	if (strpbrk(config->comm, "\"\\"))
		return fr_fail(d, -EINVAL, "leave Comm= out, and use CGroup= or Pid=",
			"the trigger %s: a filter cannot contain the name %s", config->name, config->comm);
	if (config->threshold && !e->tracepoint)
		return fr_fail(d, -EINVAL, "use CGroup= or Pid= instead of Comm=, or use a tracepoint",
			"the trigger %s: Comm= and Threshold= together need a tracepoint, and %s is not a "
			"tracepoint",
			config->name, e->name);
	return 0;
}

static int parse_event(const struct fr_trigger_config *config, struct fr_event_list *list, struct fr_diag *d)
{
	/* If the text of Event= has no period, the event records each occurrence. */
	const struct fr_event_defaults defaults = {.period = 1, .each = true};
	const struct fr_event *e;
	int r = fr_event_parse(config->subject ? config->subject : "", &defaults, list, d);

	if (r < 0)
		return r;
	if (list->n != 1)
		return fr_fail(d, -EINVAL, "write a section for each event",
			"the trigger %s: Event=%s is %zu events, but a trigger has only one", config->name,
			config->subject, list->n);
	e = &list->items[0];
	if (config->filter) {
		r = fr_event_set_filter(list, config->filter, d);
		if (r < 0)
			return r;
	}
	if (!config->threshold && !has_occurrences(&e->attr) && !e->attr.freq && e->attr.sample_period == 1)
		return fr_fail(d, -EINVAL,
			"add Threshold= and Interval=, or a period: Event=cycles/period=1000000/",
			"the trigger %s: %s occurs all the time", config->name, e->name);
	if (config->cgroup && config->pid)
		return fr_fail(d, -EINVAL, "leave CGroup= or Pid= out",
			"the trigger %s: an event cannot have both CGroup= and Pid=", config->name);
	return check_comm(config, e, d);
}

static int event_check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	struct fr_event_list list = {0};
	uint64_t threshold, interval_ns;
	struct fr_diag why = {0};
	int r = parse_interval(config, &threshold, &interval_ns, d);

	if (r < 0)
		return r;
	r = parse_event(config, &list, &why);
	fr_event_list_deinit(&list);
	/* Only -EINVAL and -ENOENT are errors of the configuration. Other errors can depend on the user who
	   runs this check (no access to tracefs) or on this machine (another PMU). */
	if (r == 0 || (r != -EINVAL && r != -ENOENT))
		return 0;
	return fr_fail(d, -EINVAL, why.hint, "%s", why.what);
}

/* Lists the threads of this process, and returns their number. All threads exist before a trigger is armed.
   If this process is not in the initial pid namespace, returns 0, because a filter needs thread ids of the
   initial namespace. */
static size_t list_own_threads(const struct fr_source_env *env, pid_t ret[static OWN_THREADS_MAX])
{
	_cleanup_closedir_ DIR *dir = env->pidns ? NULL : opendir("/proc/self/task");
	const struct dirent *e;
	size_t n = 0;

	while (dir && n < OWN_THREADS_MAX && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			ret[n++] = (pid_t)strtol(e->d_name, NULL, 10);
	return n;
}

/* Makes a filter of Filter= and Comm= that also excludes this process. In a filter of the kernel, COMM is the
   name of the current task, even if the event has no field of this name. */
static int make_filter(const struct event *e, char **ret)
{
	const struct fr_trigger_config *config = e->source.config;
	const char *user = e->list.items[0].filter;
	_cleanup_free_ char *text = NULL;
	pid_t tids[OWN_THREADS_MAX];
	size_t n = list_own_threads(e->source.env, tids);

	if (!config->comm)
		return fr_filter_text(user, tids, n, ret);
	if (asprintf(&text, "%s%s%sCOMM == \"%.15s\"", user ? "(" : "", user ? user : "", user ? ") && " : "",
		    config->comm) < 0)
		return -ENOMEM;
	return fr_filter_text(text, tids, n, ret);
}

static void fire(struct event *e, struct fr_cause *cause)
{
	snprintf(cause->detail, sizeof(cause->detail), "%s", e->list.items[0].name);
	e->quiet_until_ns = cause->time_ns + fr_source_cooldown_ns(e->source.config);
	fr_source_fire(&e->source, cause);
}

static void on_sample(void *ctx, const struct fr_event_sample *sample)
{
	struct event *e = ctx;
	const struct fr_trigger_config *config = e->source.config;
	/* Pid and tid have all bits set if the process is in another pid namespace or has ended. */
	pid_t pid = sample->head.pid <= INT_MAX ? (pid_t)sample->head.pid : 0;
	struct fr_cause cause = {.time_ns = sample->head.time,
		.pid = pid,
		.tid = pid ? (pid_t)sample->head.tid : 0,
		.cpu = (int)sample->cpu};

	/* Skip the samples of this process, because it is possible that no filter excludes them. With Pid=,
	   also skip the samples of child processes, which kernels without inherit_thread record. */
	if (pid == getpid() || (config->pid && pid != config->pid))
		return;
	e->source.stats.last_ns = cause.time_ns;
	/* Check the cool-down first: the steps below read /proc, which costs more than all other steps. */
	if (cause.time_ns < e->quiet_until_ns) {
		e->source.stats.fired++;
		e->source.stats.cooled++;
		return;
	}
	fr_cause_fill_from_proc(&cause);
	if (config->comm && strncmp(config->comm, cause.comm, sizeof(cause.comm) - 1) != 0 &&
		!e->list.items[0].tracepoint)
		return;
	e->source.stats.fired++;
	snprintf(cause.reason, sizeof(cause.reason), "event");
	fire(e, &cause);
}

/* Drains the rings. After that, the event loop polls the rings again: at once, or when the cool-down ends. */
static int drain_and_poll(struct event *e)
{
	uint64_t now;
	int r;

	if (fr_event_watch_poll(&e->watch))
		e->source.stats.gone = "its process has ended";
	fr_event_watch_drain(&e->watch, on_sample, e);
	now = fr_monotonic_ns();
	if (now >= e->quiet_until_ns)
		return sd_event_source_set_enabled(e->io, SD_EVENT_ON);
	r = sd_event_source_set_enabled(e->io, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_time(e->timer, e->quiet_until_ns / FR_NSEC_PER_USEC + 1);
	return r < 0 ? r : sd_event_source_set_enabled(e->timer, SD_EVENT_ONESHOT);
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	return drain_and_poll(userdata);
}

static int on_cooled_down(sd_event_source *source, uint64_t usec, void *userdata)
{
	return drain_and_poll(userdata);
}

static void end_slice(struct event *e)
{
	uint64_t now = fr_monotonic_ns(), count = fr_event_watch_count(&e->watch);
	struct fr_cause cause = {.time_ns = now,
		.value = e->slice_count + count,
		.threshold = e->threshold,
		.unit = FR_CAUSE_COUNT,
		.cpu = -1};

	e->slice_count = count;
	if (e->source.config->pid && kill(e->source.config->pid, 0) < 0 && errno == ESRCH)
		e->source.stats.gone = "its process has ended";
	e->source.stats.last = cause.value;
	e->source.stats.last_ns = now;
	if (cause.value < e->threshold)
		return;
	/* These occurrences have made an anomaly, so they must not count again together with
	   the next slice. */
	e->slice_count = 0;
	e->source.stats.fired++;
	if (now < e->quiet_until_ns) {
		e->source.stats.cooled++;
		return;
	}
	cause.pid = e->source.config->pid;
	fr_cause_fill_from_proc(&cause);
	snprintf(cause.reason, sizeof(cause.reason), "too many events");
	fire(e, &cause);
}

static int on_slice(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct event *e = userdata;
	int r = sd_event_source_set_time_relative(source, e->interval_ns / 2 / FR_NSEC_PER_USEC);

	if (r >= 0)
		r = sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	end_slice(e);
	return r;
}

static void event_close(struct fr_source *s)
{
	struct event *e = (struct event *)s;

	sd_event_source_disable_unref(e->io);
	sd_event_source_disable_unref(e->timer);
	fr_event_watch_close(&e->watch);
	fr_event_list_deinit(&e->list);
}

static int add_to_loop(struct event *e)
{
	sd_event *loop = e->source.env->event;
	int r;

	if (e->threshold) {
		uint64_t half_usec = e->interval_ns / 2 / FR_NSEC_PER_USEC;

		return sd_event_add_time_relative(
			loop, &e->timer, CLOCK_MONOTONIC, half_usec, half_usec / 16, on_slice, e);
	}
	r = sd_event_add_io(loop, &e->io, e->watch.epoll_fd, EPOLLIN, on_readable, e);
	if (r >= 0)
		r = sd_event_add_time(loop, &e->timer, CLOCK_MONOTONIC, 0, 1000, on_cooled_down, e);
	return r < 0 ? r : sd_event_source_set_enabled(e->timer, SD_EVENT_OFF);
}

static int event_open(struct fr_source *s, struct fr_diag *d)
{
	struct event *e = (struct event *)s;
	const struct fr_trigger_config *config = s->config;
	_cleanup_free_ char *filter = NULL;
	struct fr_event_watch_config watch = {
		.pid = config->pid, .cgroup = config->cgroup, .count = config->threshold};
	int r = parse_interval(config, &e->threshold, &e->interval_ns, d);

	e->watch.epoll_fd = -1;
	if (r == 0)
		r = parse_event(config, &e->list, d);
	if (r == 0 && e->list.items[0].tracepoint)
		r = make_filter(e, &filter);
	if (r < 0)
		return r;
	watch.event = &e->list.items[0];
	watch.filter = filter && *filter ? filter : NULL;
	r = fr_event_watch_open(&e->watch, &watch, d);
	if (r < 0)
		return r;
	s->stats.unit = e->threshold ? FR_CAUSE_COUNT : FR_CAUSE_NONE;
	s->stats.threshold = e->threshold;
	r = add_to_loop(e);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot listen to the event %s", config->subject) : 0;
}

static void event_get_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	ret->lost = fr_event_watch_lost(&((struct event *)s)->watch);
	ret->fired += ret->lost;
}

const struct fr_source_class fr_source_event = {.name = "event",
	.size = sizeof(struct event),
	.open = event_open,
	.close = event_close,
	.get_stats = event_get_stats,
	.check = event_check};
