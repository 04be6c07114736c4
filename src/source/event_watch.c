// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/event_watch.h"
#include "base/cleanup.h"
#include "capture/perf_open.h"
#include "capture/target.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#define RING_PAGES 8 /* about 500 records */
#define EPOLL_BATCH 64

static void make_attr(const struct fr_event_watch_config *config, struct perf_event_attr *a)
{
	a->sample_type = FR_SAMPLE_TYPE;
	a->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_LOST;
	a->write_backward = 0;
	a->inherit = config->pid > 0;
	a->inherit_thread = a->inherit;
	a->watermark = 0;
	a->wakeup_events = 1;
	if (config->count) {
		a->freq = 0;
		a->sample_period = 0;
		a->wakeup_events = 0;
		a->sample_type = 0;
		a->precise_ip = 0;
	}
}

static int open_fd(struct perf_event_attr *a, pid_t pid, int cpu, unsigned long flags)
{
	int fd = fr_perf_open_adapt(a, pid, cpu, flags);

	/* Linux has inherit_thread since 5.13. Without inherit_thread, child processes inherit the event, so
	   their occurrences also count. */
	if (fd == -EINVAL && a->inherit_thread) {
		a->inherit_thread = 0;
		fd = fr_perf_open_adapt(a, pid, cpu, flags);
		a->inherit_thread = fd < 0;
	}
	return fd;
}

static int map_ring(struct fr_event_watch *w, size_t cpu_index, int fd, struct fr_diag *d)
{
	size_t bytes = RING_PAGES * (size_t)sysconf(_SC_PAGESIZE);
	struct fr_ring *ring = &w->rings[cpu_index];
	int r;

	if (ring->page) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fds[0]) < 0)
			return fr_fail_errno(d, -errno, NULL, "cannot direct an event to its CPU's ring");
	} else {
		r = fr_ring_map(ring, fd, bytes, false);
		if (r < 0)
			return fr_explain_map(d, r, bytes, w->n_rings);
		ring->epoll_fd = w->epoll_fd;
		ring->owner = &w->cell;
	}
	return fr_ring_add_fd(ring, fd);
}

static int add_fd(struct fr_event_watch *w, const struct fr_event_watch_config *config, size_t cpu_index,
	int fd, struct fr_diag *d)
{
	w->fds[w->n_fds++] = fd;
	if (config->filter) {
		int r = fr_filter_set(fd, config->event, config->filter, d);

		if (r < 0)
			return r;
	}
	return config->count ? 0 : map_ring(w, cpu_index, fd, d);
}

/* Opens the event on one CPU: for each thread of T; or, if T has no threads, for all threads of T's cgroup or
   of the machine. Skips threads that have ended. */
static int open_on_cpu(struct fr_event_watch *w, const struct fr_event_watch_config *config,
	struct fr_event *e, const struct fr_target *t, size_t cpu_index, struct fr_diag *d)
{
	bool in_cgroup = t->cgroup_fd >= 0;
	/* A counter needs no ring, so each thread needs only one counter, for all CPUs (cpu is -1). */
	int cpu = config->count && t->n_tids ? -1 : t->cpus[cpu_index], r = 0;

	for (size_t i = 0; r == 0 && i < FR_MAX(t->n_tids, (size_t)1); i++) {
		pid_t pid = in_cgroup ? t->cgroup_fd : t->n_tids ? t->tids[i] : -1;
		int fd = open_fd(&e->attr, pid, cpu, in_cgroup ? PERF_FLAG_PID_CGROUP : 0);

		if (fd == -ESRCH && t->n_tids)
			continue;
		r = fd < 0 ? fr_explain_open(d, fd, e, cpu, t->n_tids ? pid : -1)
			   : add_fd(w, config, cpu_index, fd, d);
	}
	return r;
}

static int allocate(struct fr_event_watch *w, const struct fr_event_watch_config *config,
	const struct fr_target *t, struct fr_diag *d)
{
	size_t n = t->n_cpus * FR_MAX(t->n_tids, (size_t)1);

	w->fds = calloc(n, sizeof(*w->fds));
	w->counts = calloc(n, sizeof(*w->counts));
	if (!w->fds || !w->counts)
		return -ENOMEM;
	if (config->count)
		return 0;
	w->n_rings = t->n_cpus;
	w->rings = calloc(w->n_rings, sizeof(*w->rings));
	w->bounce = malloc(FR_RUN_MAX);
	if (!w->rings || !w->bounce)
		return -ENOMEM;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return w->epoll_fd < 0 ? fr_fail_errno(d, -errno, NULL, "cannot poll an event") : 0;
}

static int enable(struct fr_event_watch *w, struct fr_diag *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->n_rings; i++)
		if (w->rings[i].page)
			r = fr_ring_add_to_epoll(&w->rings[i]);
	for (size_t i = 0; r == 0 && i < w->n_fds; i++)
		if (ioctl(w->fds[i], PERF_EVENT_IOC_ENABLE, 0) < 0)
			r = -errno;
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot enable an event") : 0;
}

static int open_all(struct fr_event_watch *w, const struct fr_event_watch_config *config,
	const struct fr_target *t, struct fr_diag *d)
{
	struct fr_event e = *config->event; /* shares the strings with the original */
	int r = allocate(w, config, t, d);

	make_attr(config, &e.attr);
	for (size_t i = 0; r == 0 && i < (config->count && t->n_tids ? 1 : t->n_cpus); i++)
		r = open_on_cpu(w, config, &e, t, i, d);
	if (r == 0 && !w->n_fds)
		r = fr_fail(d, -ESRCH, "set Pid= to a process that is running", "process %d has ended",
			(int)config->pid);
	w->tells_lost = e.attr.read_format & PERF_FORMAT_LOST;
	return r == 0 ? enable(w, d) : r;
}

int fr_event_watch_open(
	struct fr_event_watch *w, const struct fr_event_watch_config *config, struct fr_diag *d)
{
	const struct fr_capture_config where = {.cpus = config->event->cpus,
		.pids = &config->pid,
		.n_pids = config->pid > 0,
		.cgroup = config->cgroup};
	struct fr_target target;
	int r;

	*w = (struct fr_event_watch){.epoll_fd = -1};
	if (config->pid && config->event->system_wide_only)
		return fr_fail(d, -EINVAL, "leave Pid= out", "%s cannot count a single process",
			config->event->name);
	r = fr_target_init(&target, &where, d);
	if (r < 0)
		return r;
	r = open_all(w, config, &target, d);
	fr_target_deinit(&target);
	if (r < 0)
		fr_event_watch_close(w);
	return r;
}

void fr_event_watch_close(struct fr_event_watch *w)
{
	for (size_t i = 0; w->rings && i < w->n_rings; i++)
		fr_ring_unmap(&w->rings[i]);
	for (size_t i = 0; i < w->n_fds; i++)
		close(w->fds[i]);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	free(w->rings);
	free(w->bounce);
	free(w->fds);
	free(w->counts);
	*w = (struct fr_event_watch){.epoll_fd = -1};
}

static uint64_t count_between(const struct fr_event_count *old, const struct fr_event_count *now)
{
	uint64_t value = now->value - old->value, enabled = now->enabled_ns - old->enabled_ns,
		 running = now->running_ns - old->running_ns;

	if (running == 0 || running >= enabled)
		return value;
	return (uint64_t)((double)value * (double)enabled / (double)running);
}

static bool read_count(const struct fr_event_watch *w, size_t i, struct fr_event_count *ret)
{
	ssize_t size = w->tells_lost ? sizeof(*ret) : offsetof(struct fr_event_count, lost);

	*ret = (struct fr_event_count){0};
	return read(w->fds[i], ret, (size_t)size) == size;
}

uint64_t fr_event_watch_count(struct fr_event_watch *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->n_fds; i++) {
		struct fr_event_count now;

		if (!read_count(w, i, &now))
			continue;
		sum += count_between(&w->counts[i], &now);
		w->counts[i] = now;
	}
	return sum;
}

bool fr_event_watch_poll(struct fr_event_watch *w)
{
	struct epoll_event events[EPOLL_BATCH];
	int n = epoll_wait(w->epoll_fd, events, EPOLL_BATCH, 0);

	for (int i = 0; i < n; i++)
		if (events[i].events & (EPOLLHUP | EPOLLERR))
			fr_ring_handle_hang_up(events[i].data.ptr);
	for (size_t i = 0; i < w->n_rings; i++)
		if (w->rings[i].polled < w->rings[i].n_fds)
			return false;
	return true;
}

struct sink {
	fr_event_sample_fn fn;
	void *ctx;
};

static void on_run(void *ctx, const struct fr_run *run)
{
	const struct sink *sink = ctx;
	const uint8_t *p = run->data, *end = p + run->len;

	for (; p < end; p += ((const struct perf_event_header *)p)->size) {
		const struct perf_event_header *h = (const void *)p;

		if (h->type == PERF_RECORD_SAMPLE && h->size >= sizeof(struct fr_event_sample))
			sink->fn(sink->ctx, (const void *)p);
	}
}

void fr_event_watch_drain(struct fr_event_watch *w, fr_event_sample_fn fn, void *ctx)
{
	static const struct fr_id_table no_ids;
	struct fr_tally tally = {
		.ids = &no_ids, .cells = &w->cell, .unknown = &w->cell, .lost_as = FR_LOSS_KERNEL_RING};
	struct sink sink = {fn, ctx};

	for (size_t i = 0; i < w->n_rings; i++)
		if (w->rings[i].page)
			fr_ring_drain(&w->rings[i], &tally, w->bounce, on_run, &sink);
	fr_tally_flush(&tally);
}

uint64_t fr_event_watch_lost(const struct fr_event_watch *w)
{
	struct fr_event_count now;
	uint64_t sum = 0;

	if (!w->tells_lost)
		return atomic_load_explicit(&w->cell.lost[FR_LOSS_KERNEL_RING], memory_order_relaxed);
	for (size_t i = 0; i < w->n_fds; i++)
		sum += read_count(w, i, &now) ? now.lost : 0;
	return sum;
}
