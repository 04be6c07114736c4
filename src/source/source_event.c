// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event=: any event of perf, as perf record --switch-output-event has it, or one that comes too often.
 *
 * Without Threshold=, each occurrence is an anomaly: rings that wake us with their first record. Then the
 * source does not listen until its cool-down is over, so that a storm costs what a small ring takes: what
 * came meanwhile is counted.
 *
 *   ── × ─────── × × ×× ─────── × ──►  fired, cooled … cooled, fired
 *      ├─ cool-down: not polled ─┤
 *
 * With Threshold=, the event only counts, and the counters of all CPUs are read twice in Interval=. That is
 * exact, and costs the same whatever happens. A sample period would not: each CPU counts by itself, so the
 * period would be a fraction of the threshold, wake us in proportion to the load, also where it stays below,
 * and still not tell the sum. Every two slices that follow each other are looked at, so that no burst of
 * half an interval falls between two of them.
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
	struct fr_event_list list; /* the one event */
	struct fr_event_watch watch;
	sd_event_source *io, *timer;
	uint64_t interval_ns, threshold; /* 0, 0: each occurrence */
	uint64_t slice;			 /* the count of the last one */
	uint64_t quiet_until_ns;
	struct fr_source_stats stats;
};

/* Whether somebody can want to hear of each: a counter of the CPU or a clock only runs. */
static bool is_occurrence(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_TRACEPOINT || (a->type == PERF_TYPE_SOFTWARE && !fr_event_is_clock(a));
}

static int check_interval(
	const struct fr_trigger_config *config, uint64_t *ret_threshold, uint64_t *ret_ns, struct fr_diag *d)
{
	*ret_threshold = *ret_ns = 0;
	if (!config->threshold) {
		if (config->interval_ns == FR_TRIGGER_UNSET)
			return 0;
		return fr_fail(d, -EINVAL, "give Threshold= too, or leave Interval= out",
			"the trigger %s: without Threshold= each occurrence counts, in no interval",
			config->name);
	}
	if (fr_threshold_parse(config->threshold, FR_CAUSE_COUNT, ret_threshold) < 0 || !*ret_threshold)
		return fr_fail(d, -EINVAL, "it is a number of occurrences, like Threshold=1000",
			"the trigger %s: \"%s\" is no threshold of an event", config->name,
			config->threshold);
	*ret_ns = config->interval_ns == FR_TRIGGER_UNSET ? INTERVAL_DEFAULT_NS : config->interval_ns;
	if (*ret_ns < INTERVAL_MIN_NS || *ret_ns > INTERVAL_MAX_NS)
		return fr_fail(d, -EINVAL, "give 10ms to 1h", "the trigger %s: Interval= is out of its range",
			config->name);
	return 0;
}

static int check_comm(const struct fr_trigger_config *config, const struct fr_event *e, struct fr_diag *d)
{
	if (!config->comm)
		return 0;
	if (strpbrk(config->comm, "\"\\"))
		return fr_fail(d, -EINVAL, "leave Comm= out, and use CGroup= or Pid=",
			"the trigger %s: no filter can have the name %s", config->name, config->comm);
	if (config->threshold && !e->tracepoint)
		return fr_fail(d, -EINVAL, "use CGroup= or Pid=, or a tracepoint",
			"the trigger %s: %s cannot be counted by Comm=", config->name, e->name);
	return 0;
}

static int parse(const struct fr_trigger_config *config, struct fr_event_list *list, struct fr_diag *d)
{
	/* What has no period of its own: each. */
	const struct fr_event_defaults defaults = {.period = 1, .each = true};
	const struct fr_event *e;
	int r = fr_event_parse(config->subject ? config->subject : "", &defaults, list, d);

	if (r < 0)
		return r;
	if (list->n != 1)
		return fr_fail(d, -EINVAL, "make a section for each",
			"the trigger %s: Event=%s is %zu events, and a trigger has one", config->name,
			config->subject, list->n);
	e = &list->items[0];
	if (config->filter) {
		r = fr_event_set_filter(list, config->filter, d);
		if (r < 0)
			return r;
	}
	if (!config->threshold && !is_occurrence(&e->attr) && !e->attr.freq && e->attr.sample_period == 1)
		return fr_fail(d, -EINVAL,
			"give Threshold= and Interval=, or a period: Event=cycles/period=1000000/",
			"the trigger %s: %s occurs all the time", config->name, e->name);
	if (config->cgroup && config->pid)
		return fr_fail(d, -EINVAL, "leave one of them out",
			"the trigger %s: CGroup= and Pid= cannot be watched together", config->name);
	return check_comm(config, e, d);
}

static int check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	struct fr_event_list list = {0};
	uint64_t threshold, interval_ns;
	struct fr_diag why = {0};
	int r = check_interval(config, &threshold, &interval_ns, d);

	if (r < 0)
		return r;
	r = parse(config, &list, &why);
	fr_event_list_deinit(&list);
	/* Whoever checks may not be allowed to see tracefs, and a PMU may be of another machine. */
	if (r == 0 || (r != -EINVAL && r != -ENOENT))
		return 0;
	return fr_fail(d, -EINVAL, why.hint, "%s", why.what);
}

/* The threads of ours that are there now; those of the recorder are, before any trigger is armed. Within a
   pid namespace of its own, a filter of the kernel cannot name them. */
static size_t own_threads(const struct fr_source_env *env, pid_t ret[static OWN_THREADS_MAX])
{
	_cleanup_closedir_ DIR *dir = env->pidns ? NULL : opendir("/proc/self/task");
	const struct dirent *e;
	size_t n = 0;

	while (dir && n < OWN_THREADS_MAX && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			ret[n++] = (pid_t)strtol(e->d_name, NULL, 10);
	return n;
}

/* Filter= and Comm= and not ourselves, into RET. COMM is whose context it is, whatever fields an event has.
 */
static int make_filter(const struct event *e, char **ret)
{
	const struct fr_trigger_config *config = e->source.config;
	const char *user = e->list.items[0].filter;
	_cleanup_free_ char *text = NULL;
	pid_t tids[OWN_THREADS_MAX];
	size_t n = own_threads(e->source.env, tids);

	if (!config->comm)
		return fr_filter_text(user, tids, n, ret);
	if (asprintf(&text, "%s%s%sCOMM == \"%.15s\"", user ? "(" : "", user ? user : "", user ? ") && " : "",
		    config->comm) < 0)
		return -ENOMEM;
	return fr_filter_text(text, tids, n, ret);
}

static void deliver(struct event *e, struct fr_cause *cause)
{
	const struct fr_source_env *env = e->source.env;

	snprintf(cause->detail, sizeof(cause->detail), "%s", e->list.items[0].name);
	e->quiet_until_ns = cause->time_ns + fr_source_cooldown_ns(e->source.config);
	env->fire(env->ctx, e->source.trigger, cause);
}

static void on_sample(void *ctx, const struct fr_event_sample *sample)
{
	struct event *e = ctx;
	const struct fr_trigger_config *config = e->source.config;
	/* All ones: of no process that we can see, or one that ends. */
	pid_t pid = sample->head.pid <= INT_MAX ? (pid_t)sample->head.pid : 0;
	struct fr_cause cause = {.time_ns = sample->head.time,
		.pid = pid,
		.tid = pid ? (pid_t)sample->head.tid : 0,
		.cpu = (int)sample->cpu};

	/* Of our own, what no filter has kept away; and children, where the kernel counts them. */
	if (pid == getpid() || (config->pid && pid != config->pid))
		return;
	e->stats.last_ns = cause.time_ns;
	/* Before a look at who it is, which costs more than all else. */
	if (cause.time_ns < e->quiet_until_ns) {
		e->stats.fired++;
		e->stats.cooled++;
		return;
	}
	fr_cause_fill_from_proc(&cause);
	if (config->comm && strncmp(config->comm, cause.comm, sizeof(cause.comm) - 1) != 0 &&
		!e->list.items[0].tracepoint)
		return;
	e->stats.fired++;
	snprintf(cause.reason, sizeof(cause.reason), "event");
	deliver(e, &cause);
}

/* What the rings hold; and then either listen, or not until the cool-down is over. */
static int listen_on(struct event *e)
{
	uint64_t now;
	int r;

	if (fr_event_watch_poll(&e->watch))
		e->stats.gone = "its process has ended";
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
	return listen_on(userdata);
}

static int on_cooled_down(sd_event_source *source, uint64_t usec, void *userdata)
{
	return listen_on(userdata);
}

static void count(struct event *e)
{
	uint64_t now = fr_monotonic_ns(), slice = fr_event_watch_count(&e->watch);
	struct fr_cause cause = {.time_ns = now,
		.value = e->slice + slice,
		.threshold = e->threshold,
		.unit = FR_CAUSE_COUNT,
		.cpu = -1};

	e->slice = slice;
	if (e->source.config->pid && kill(e->source.config->pid, 0) < 0 && errno == ESRCH)
		e->stats.gone = "its process has ended";
	e->stats.last = cause.value;
	e->stats.last_ns = now;
	if (cause.value < e->threshold)
		return;
	/* What has fired does not fire again with the next slice. */
	e->slice = 0;
	e->stats.fired++;
	if (now < e->quiet_until_ns) {
		e->stats.cooled++;
		return;
	}
	cause.pid = e->source.config->pid;
	fr_cause_fill_from_proc(&cause);
	snprintf(cause.reason, sizeof(cause.reason), "too many events");
	deliver(e, &cause);
}

static int on_slice(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct event *e = userdata;
	int r = sd_event_source_set_time_relative(source, e->interval_ns / 2 / FR_NSEC_PER_USEC);

	if (r >= 0)
		r = sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	count(e);
	return r;
}

static void event_close(struct fr_source *s)
{
	struct event *e = (struct event *)s;

	sd_event_source_disable_unref(e->io);
	sd_event_source_disable_unref(e->timer);
	fr_event_watch_close(&e->watch);
	fr_event_list_deinit(&e->list);
	free(e);
}

static int attach(struct event *e)
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

static int start(struct event *e, struct fr_diag *d)
{
	const struct fr_trigger_config *config = e->source.config;
	_cleanup_free_ char *filter = NULL;
	struct fr_event_watch_config watch = {
		.pid = config->pid, .cgroup = config->cgroup, .count = config->threshold};
	int r = check_interval(config, &e->threshold, &e->interval_ns, d);

	if (r == 0)
		r = parse(config, &e->list, d);
	if (r == 0 && e->list.items[0].tracepoint)
		r = make_filter(e, &filter);
	if (r < 0)
		return r;
	watch.event = &e->list.items[0];
	watch.filter = filter && *filter ? filter : NULL;
	r = fr_event_watch_open(&e->watch, &watch, d);
	if (r < 0)
		return r;
	r = attach(e);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot listen to the event %s", config->subject) : 0;
}

static int event_open(const struct fr_source_env *env, const struct fr_trigger_config *config, void *trigger,
	struct fr_source **ret, struct fr_diag *d)
{
	struct event *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->source = (struct fr_source){&fr_source_event, env, config, trigger};
	e->watch.epoll_fd = -1;
	r = start(e, d);
	if (r < 0) {
		event_close(&e->source);
		return r;
	}
	e->stats.unit = e->threshold ? FR_CAUSE_COUNT : FR_CAUSE_NONE;
	e->stats.threshold = e->threshold;
	*ret = &e->source;
	return 0;
}

static void event_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	const struct event *e = (struct event *)s;

	*ret = e->stats;
	ret->lost = fr_event_watch_lost(&e->watch);
	ret->fired += ret->lost;
}

const struct fr_source_class fr_source_event = {
	.name = "event", .open = event_open, .close = event_close, .stats = event_stats, .check = check};
