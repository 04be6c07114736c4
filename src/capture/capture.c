// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opens the events (once for each CPU, or for each CPU and thread), and maps the kernel rings that the events
 * share.
 *
 *   CPU 0   ring[SIDEBAND]   ◄── dummy
 *           ring[FORWARD]    ◄── event A (mapped), event B (SET_OUTPUT), …
 *           ring[OVERWRITE]  ◄── event C/overwrite/
 *           BPF ring         ◄── BPF programs, for event E with call-graph=unwind, for offcpu, and for
 *                                tracepoints (bpf_open.c)
 *           AUX area         ◄── event D of a PMU with AUX data: an area for each such event (aux_area.h)
 *   CPU 1   …
 *
 * On each CPU, the ring is mapped with the first event that is opened for it. SET_OUTPUT directs the records
 * of the other events to this ring.
 */
#include "capture/aux_area.h"
#include "capture/capture_internal.h"
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "base/units.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#define FDS_SPARE 1024 /* descriptors for other files of the program, mostly perf maps of run-time code */

static enum fr_ring_kind kind_of(const struct fr_capture *c, size_t event)
{
	if (event == c->n_events - 1)
		return FR_RING_SIDEBAND;
	return c->events[event].overwrite ? FR_RING_OVERWRITE : FR_RING_FORWARD;
}

static int check_ring_size(const char *name, size_t bytes, struct fr_diag *d)
{
	char size[FR_UNIT_SIZE];

	if (bytes >= (size_t)sysconf(_SC_PAGESIZE) && !(bytes & (bytes - 1)))
		return 0;
	return fr_fail(d, -EINVAL, "give a power of two, at least a page: 512K, 1M, 2M …",
		"%s of %s cannot be a kernel ring", name, fr_size_format(bytes, size));
}

static int check_config(struct fr_capture *c, const struct fr_capture_config *config, struct fr_diag *d)
{
	size_t ring = config->ring_bytes ? config->ring_bytes : FR_DEFAULT_RING_BYTES;
	size_t sideband =
		config->sideband_ring_bytes ? config->sideband_ring_bytes : FR_DEFAULT_SIDEBAND_RING_BYTES;
	int r;

	if (!config->events || !config->events->n)
		return fr_fail(d, -EINVAL, NULL, "no event to record");
	r = check_ring_size("a kernel buffer", ring, d);
	if (r == 0)
		r = check_ring_size("a side-band buffer", sideband, d);
	c->ring_bytes[FR_RING_FORWARD] = c->ring_bytes[FR_RING_OVERWRITE] = ring;
	c->ring_bytes[FR_RING_SIDEBAND] = sideband;
	c->aux_bytes = config->aux_bytes ? config->aux_bytes : FR_DEFAULT_AUX_BYTES;
	if (r == 0)
		r = check_ring_size("an AUX buffer", c->aux_bytes, d);
	return r;
}

static int copy_events(struct fr_capture *c, const struct fr_capture_config *config)
{
	const struct fr_event_list *list = config->events;
	struct fr_event sideband = {.name = (char *)"dummy"};
	int r = 0;

	fr_event_sideband_attr(&sideband.attr);
	sideband.attr.build_id &= config->build_ids;
	/* perf needs the section .eh_frame of a file to unwind a copied stack. Linkers put this section into
	   a map without code, so maps without code are also recorded. */
	for (size_t i = 0; i < list->n; i++)
		sideband.attr.mmap_data |= !!(list->items[i].attr.sample_type & PERF_SAMPLE_STACK_USER);
	c->events = calloc(list->n + 1, sizeof(*c->events));
	if (!c->events)
		return -ENOMEM;
	c->n_events = list->n + 1;
	for (size_t i = 0; r == 0 && i < c->n_events; i++) {
		struct perf_event_attr *a = &c->events[i].attr;
		size_t ring;

		r = fr_event_copy(&c->events[i], i < list->n ? &list->items[i] : &sideband);
		c->events[i].unwind &= config->unwinder != NULL;
		ring = c->ring_bytes[kind_of(c, i)];
		a->watermark = 1;
		a->wakeup_watermark = c->events[i].overwrite ? ring : FR_MIN(ring / 4, FR_WAKEUP_MAX);
		a->inherit &= config->n_pids > 0;
		a->enable_on_exec = i < list->n && config->enable_on_exec && config->n_pids &&
				    !c->events[i].off_cpu && (!c->events[i].off || c->events[i].unwind);
		c->has_overwrite |= c->events[i].overwrite;
	}
	return r;
}

static void raise_nofile(size_t needed)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= needed)
		return;
	/* Only root is allowed to raise the hard limit. */
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){needed, FR_MAX(needed, l.rlim_max)}) == 0)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

/* If the ring for the CPU and the kind of O is mapped already, directs O to this ring. Otherwise maps the
   ring with O. */
static int join_ring(struct fr_capture *c, const struct fr_open_event *o, struct fr_diag *d)
{
	enum fr_ring_kind kind = kind_of(c, o->event);
	struct fr_ring *r = &c->rings[kind][o->cpu_index];
	int code;

	if (r->page) {
		if (ioctl(o->fd, PERF_EVENT_IOC_SET_OUTPUT, r->fds[0]) < 0)
			return fr_fail_errno(d, -errno, NULL, "cannot direct %s to the ring of CPU %d",
				c->events[o->event].name, c->cpus[o->cpu_index]);
	} else {
		code = fr_ring_map(r, o->fd, c->ring_bytes[kind], kind == FR_RING_OVERWRITE);
		if (code < 0)
			return fr_explain_map(d, code, c->ring_bytes[kind], c->n_cpus);
		r->owner = &c->cells[o->event * c->n_cpus + o->cpu_index];
		r->epoll_fd = c->epoll_fd;
	}
	return fr_ring_add_fd(r, o->fd);
}

static int add_open_event(struct fr_capture *c, int fd, size_t event, size_t cpu_index, struct fr_diag *d)
{
	struct fr_open_event *o = &c->open[c->n_open++];

	*o = (struct fr_open_event){.fd = fd, .event = event, .cpu_index = cpu_index};
	if (ioctl(fd, PERF_EVENT_IOC_ID, &o->id) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot read the id of %s", c->events[event].name);
	if (c->events[event].off_cpu)
		return fr_bpf_capture_add_off_cpu(c->bpf, &c->events[event], c->cpus[cpu_index], o->id,
			&c->cells[event * c->n_cpus + cpu_index], d);
	if (c->events[event].unwind)
		return fr_bpf_capture_add(c->bpf, &c->events[event], fd, c->cpus[cpu_index], o->id,
			&c->cells[event * c->n_cpus + cpu_index], d);
	return join_ring(c, o, d);
}

/* Opens an event once, for one CPU or task. The first open of the event clears the bits of the attr that the
   kernel does not know. Later opens use the same attr, because an event has only one attr in a file. */
static int open_once(struct fr_capture *c, size_t event, pid_t pid, int cpu, unsigned long flags)
{
	const bool is_first = !c->n_open || c->open[c->n_open - 1].event != event;
	struct perf_event_attr *a = &c->events[event].attr;
	const struct perf_event_attr described = *a;
	int fd;

	/* With a BPF program, the kernel need not walk the stack. But for a precise event, bpf_get_stack()
	   wants the kernel's own call chain (perf_event_set_bpf_handler() in kernel/events/core.c). */
	if (c->events[event].unwind && !a->precise_ip) {
		a->sample_type &= ~(__u64)PERF_SAMPLE_CALLCHAIN;
		a->sample_max_stack = 0;
	}
	fd = is_first ? fr_perf_open_adapt(a, pid, cpu, flags) : fr_perf_open(a, pid, cpu, flags);
	a->sample_type |= described.sample_type & PERF_SAMPLE_CALLCHAIN;
	a->sample_max_stack = described.sample_max_stack;
	return fd;
}

/* Opens an event on one CPU: once for each recorded thread, or once for the whole CPU. Skips threads that
   have ended. */
static int open_on_cpu(
	struct fr_capture *c, const struct fr_target *t, size_t event, size_t cpu_index, struct fr_diag *d)
{
	const struct fr_event *e = &c->events[event];
	/* Any process can enter the cgroup later, so the side-band of all processes is recorded. */
	bool in_cgroup = t->cgroup_fd >= 0 && kind_of(c, event) != FR_RING_SIDEBAND;
	int fd, r = 0;

	for (size_t i = 0; r == 0 && i < FR_MAX(t->n_tids, (size_t)1); i++) {
		pid_t pid = in_cgroup ? t->cgroup_fd : t->n_tids ? t->tids[i] : -1;

		fd = open_once(c, event, pid, c->cpus[cpu_index], in_cgroup ? PERF_FLAG_PID_CGROUP : 0);
		if (fd == -ESRCH && t->n_tids)
			continue;
		r = fd < 0 ? fr_explain_open(d, fd, e, c->cpus[cpu_index], t->n_tids ? pid : -1)
			   : add_open_event(c, fd, event, cpu_index, d);
		fr_explain_origin(d, r, e);
	}
	return r;
}

/* BPF programs make the samples of offcpu. A dummy event gives them an id that no other event has. */
static int open_id_on_cpu(struct fr_capture *c, size_t event, size_t cpu_index, struct fr_diag *d)
{
	const struct perf_event_attr dummy = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(dummy),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
	};
	const int fd = fr_perf_open(&dummy, -1, c->cpus[cpu_index], 0);

	return fd < 0 ? fr_explain_open(d, fd, &c->events[event], c->cpus[cpu_index], -1)
		      : add_open_event(c, fd, event, cpu_index, d);
}

static int open_event_on_cpu(
	struct fr_capture *c, const struct fr_target *t, size_t event, size_t cpu_index, struct fr_diag *d)
{
	if (c->events[event].aux)
		return fr_aux_open_on_cpu(c, t, event, cpu_index, d);
	return c->events[event].off_cpu ? open_id_on_cpu(c, event, cpu_index, d)
					: open_on_cpu(c, t, event, cpu_index, d);
}

static int open_event(struct fr_capture *c, const struct fr_target *t, size_t event, struct fr_diag *d)
{
	uint8_t only[FR_CPUS_MAX / 8];
	const char *list = c->events[event].cpus;
	size_t n;
	int r = list ? fr_cpulist_parse(list, only, FR_CPUS_MAX) : 0;

	if (r < 0)
		return fr_fail(d, r, NULL, "event %s: cannot read the CPUs of its PMU, \"%s\"",
			c->events[event].name, list);
	r = 0;
	/* A process can start on any CPU, and run on a sampled CPU later. So side-band is
	   recorded on all CPUs. */
	n = kind_of(c, event) == FR_RING_SIDEBAND ? c->n_cpus : c->n_sampled;
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!list || only[c->cpus[i] / 8] & 1u << c->cpus[i] % 8)
			r = open_event_on_cpu(c, t, event, i, d);
	return r;
}

static int open_events(struct fr_capture *c, const struct fr_target *t, struct fr_diag *d)
{
	int r;

	/* Open the side-band event first. A new thread inherits only events that are already open, so a
	   thread that inherits a sampling event then also inherits the side-band event. */
	r = open_event(c, t, c->n_events - 1, d);
	if (r == 0 && !c->n_open)
		return fr_fail(d, -ESRCH, "give the pid of a process that runs",
			"all processes that were to be recorded have ended");
	for (size_t i = 0; r == 0 && i + 1 < c->n_events; i++) {
		const size_t before = c->n_open + c->n_aux;

		if (c->events[i].bpf)
			continue;
		r = open_event(c, t, i, d);
		if (r == 0 && c->n_open + c->n_aux == before)
			r = fr_fail(d, -ENODEV, "give other CPUs with -C",
				"none of these CPUs counts event %s", c->events[i].name);
	}
	return r;
}

static int add_id(void *ctx, uint64_t id, uint32_t event, uint32_t cpu_index)
{
	struct fr_capture *c = ctx;

	return fr_id_table_add(&c->ids, id, event * c->n_cpus + cpu_index);
}

static int index_ids(struct fr_capture *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_open; i++)
		r = fr_id_table_add(
			&c->ids, c->open[i].id, c->open[i].event * c->n_cpus + c->open[i].cpu_index);
	if (r == 0)
		r = fr_bpf_tracepoints_foreach_id(c->tracepoints, add_id, c);
	for (size_t i = 0; i < c->n_aux; i++) {
		const struct fr_aux_view *v = &c->aux[i];

		for (size_t k = 0; r == 0 && k < v->area->n; k++)
			r = fr_id_table_add(&c->ids, v->area->ids[k], v->event * c->n_cpus + v->cpu_index);
	}
	return r;
}

static int poll_rings(struct fr_capture *c, struct fr_diag *d)
{
	int r = 0;

	for (unsigned kind = 0; kind < FR_RING_OVERWRITE; kind++)
		for (size_t i = 0; r == 0 && i < c->n_cpus; i++)
			if (c->rings[kind][i].page)
				r = fr_ring_add_to_epoll(&c->rings[kind][i]);
	for (size_t i = 0; r == 0 && i < c->n_aux; i++)
		r = fr_ring_add_to_epoll(&c->aux[i].ring);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot poll the kernel rings") : 0;
}

/* Allocates all memory of C. A drain allocates no memory. */
static int allocate_buffers(struct fr_capture *c, struct fr_target *t)
{
	/* If single tasks are recorded, they have events only on the recorded CPUs, also for side-band. */
	const size_t n_cpus = t->n_tids ? t->n_cpus : t->n_online,
		     per_event = n_cpus * FR_MAX(t->n_tids, (size_t)1);

	c->cpus = TAKE_PTR(t->cpus);
	c->n_cpus = n_cpus;
	c->n_sampled = t->n_cpus;
	raise_nofile(c->n_events * per_event + FDS_SPARE);
	c->open = calloc(c->n_events * per_event, sizeof(*c->open));
	c->cells = calloc(c->n_events * c->n_cpus + 1, sizeof(*c->cells));
	c->bounce = malloc(FR_RUN_MAX);
	if (!c->open || !c->cells || !c->bounce)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_events * c->n_cpus; i++)
		c->cells[i].ring = c->events[i / c->n_cpus].ring;
	for (unsigned kind = 0; kind < _FR_RING_MAX; kind++) {
		c->rings[kind] = calloc(c->n_cpus, sizeof(*c->rings[kind]));
		if (!c->rings[kind])
			return -ENOMEM;
	}
	if (!c->has_overwrite)
		return 0;
	c->look.copy = malloc(c->ring_bytes[FR_RING_OVERWRITE]);
	c->look.pieces =
		calloc(fr_ring_max_pieces(c->ring_bytes[FR_RING_OVERWRITE]), sizeof(*c->look.pieces));
	c->look.reversed = c->bounce;
	return c->look.copy && c->look.pieces ? 0 : -ENOMEM;
}

/* A PMU of hardware traces (Arm SPE) can have a cpumask, and yet trace single tasks. */
static int check_target(const struct fr_capture *c, const struct fr_capture_config *config, struct fr_diag *d)
{
	for (size_t i = 0; i < c->n_events; i++)
		if (c->events[i].system_wide_only && !c->events[i].aux && (config->n_pids || config->cgroup))
			return fr_fail(d, -EINVAL, "record it system-wide",
				"event %s cannot count a single task or cgroup", c->events[i].name);
	return 0;
}

static int capture_init(
	struct fr_capture *c, const struct fr_capture_config *config, struct fr_target *t, struct fr_diag *d)
{
	int r = check_config(c, config, d);

	c->system_wide = config->n_pids == 0;
	c->enable_on_exec = config->enable_on_exec && config->n_pids;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r == 0 && c->epoll_fd < 0)
		r = fr_fail_errno(d, -errno, NULL, "cannot make an epoll set");
	if (r == 0)
		r = copy_events(c, config);
	if (r == 0)
		r = allocate_buffers(c, t);
	if (r == 0)
		r = fr_aux_find(c, t, d);
	if (r == 0)
		r = check_target(c, config, d);
	if (r == 0)
		r = fr_switch_assign_slots(c, config->switches, d);
	if (r == 0)
		r = fr_bpf_open(c, config, t, d);
	if (r == 0)
		r = open_events(c, t, d);
	if (r == 0)
		r = index_ids(c);
	if (r == 0)
		/* An event takes only one filter. In a system-wide recording, the filter also has to exclude
		   threads of this program whose tids are not known yet. So the filters are only checked here,
		   and fr_capture_exclude_tids() sets them later. */
		r = c->system_wide ? fr_filters_check(c, d) : fr_filters_set(c, NULL, 0, d);
	if (r == 0)
		r = poll_rings(c, d);
	return r;
}

int fr_capture_open(const struct fr_capture_config *config, struct fr_capture **ret, struct fr_diag *d)
{
	struct fr_capture *c = calloc(1, sizeof(*c));
	struct fr_target t = {.cgroup_fd = -1};
	int r;

	fr_thread_assert_not(FR_THREAD_RECORDER);
	if (!c)
		return -ENOMEM;
	c->epoll_fd = -1;
	c->divisor = 1;
	c->previous = config->previous;
	r = fr_target_init(&t, config, d);
	if (t.cgroup_fd >= 0)
		(void)fstat(t.cgroup_fd, &c->cgroup);
	if (r == 0)
		r = capture_init(c, config, &t, d);
	fr_target_deinit(&t);
	c->previous = NULL;
	if (r < 0) {
		fr_capture_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

bool fr_capture_has_other_cgroup(const struct fr_capture *c, const char *path)
{
	_cleanup_close_ int fd = fr_cgroup_open(path);
	struct stat now;

	return fd >= 0 && fstat(fd, &now) == 0 &&
	       (now.st_ino != c->cgroup.st_ino || now.st_dev != c->cgroup.st_dev);
}

struct fr_capture *fr_capture_free(struct fr_capture *c)
{
	if (!c)
		return NULL;
	for (unsigned kind = 0; kind < _FR_RING_MAX; kind++) {
		for (size_t i = 0; c->rings[kind] && i < c->n_cpus; i++)
			fr_ring_unmap(&c->rings[kind][i]);
		free(c->rings[kind]);
	}
	fr_bpf_adopted_free(c->adopted);
	fr_bpf_tracepoints_free(c->tracepoints);
	fr_bpf_capture_free(c->bpf);
	for (size_t i = 0; i < c->n_open; i++)
		close(c->open[i].fd);
	for (size_t i = 0; i < c->n_aux; i++) {
		free(c->aux[i].ring.fds); /* the area has the memory of the ring */
		fr_aux_area_unref(c->aux[i].area);
	}
	free(c->aux);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	for (size_t i = 0; c->events && i < c->n_events; i++)
		fr_event_deinit(&c->events[i]);
	fr_id_table_deinit(&c->ids);
	free(c->events);
	free(c->cpus);
	free(c->open);
	free(c->cells);
	free(c->inherited);
	free(c->bounce);
	free(c->look.copy);
	free(c->look.pieces);
	free(c);
	return NULL;
}
