// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/bpf_capture.h"
#include "base/capability.h"
#include "base/cleanup.h"
#include "bpf/capture.h"
#include "capture/off_cpu.h"
#include "unwind/unwinder.h"

#include "capture.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif

struct fr_bpf_capture {
	struct capture *programs;
	/* One instance of the program for each event that children inherit: see capture.bpf.c. */
	struct inherited {
		const struct fr_event *event;
		struct capture *programs;
	} * inherited;
	size_t n_inherited;
	struct fr_off_cpu *off_cpu; /* NULL: the event offcpu is not recorded */
	uint64_t untracked;	    /* of off_cpu: how many were counted */
	const struct fr_unwinder *unwinder;
	struct fr_bpf_shared *shared; /* mapped */
	struct fr_bpf_ring *rings;
	size_t n_rings;
	struct opened {
		int link;
		struct fr_counter_cell *cell;
	} * opened;
	size_t n_opened;
};

static size_t shared_bytes(void)
{
	return FR_ALIGN_UP(sizeof(struct fr_bpf_shared), (size_t)sysconf(_SC_PAGESIZE));
}

/* Without an unwinder, only the maps of the rings are needed. */
static int share_unwinder(const struct fr_unwinder *unwinder, struct bpf_object *object)
{
	static const char *const maps[] = {
		"fr_unwind_chunks", "fr_unwind_shared", "fr_unwind_counters", "fr_unwind_files"};
	int r = 0;

	if (unwinder)
		return fr_unwinder_share_maps(unwinder, object);
	for (size_t i = 0; r == 0 && i < FR_ARRAY_SIZE(maps); i++)
		r = bpf_map__set_autocreate(bpf_object__find_map_by_name(object, maps[i]), false);
	return r;
}

int fr_bpf_capture_share_maps(const struct fr_bpf_capture *b, struct bpf_object *object)
{
	int r = bpf_map__reuse_fd(
		bpf_object__find_map_by_name(object, "fr_rings"), bpf_map__fd(b->programs->maps.fr_rings));

	if (r == 0)
		r = bpf_map__reuse_fd(bpf_object__find_map_by_name(object, "fr_bpf_shared"),
			bpf_map__fd(b->programs->maps.fr_bpf_shared));
	if (r == 0)
		r = bpf_map__reuse_fd(bpf_object__find_map_by_name(object, "fr_switches"),
			bpf_map__fd(b->programs->maps.fr_switches));
	return r == 0 ? share_unwinder(b->unwinder, object) : r;
}

static bool is_capable(void)
{
	return fr_has_capability(CAP_SYS_ADMIN) ||
	       (fr_has_capability(CAP_BPF) && fr_has_capability(CAP_PERFMON));
}

static int load(struct fr_bpf_capture *b, const struct fr_unwinder *unwinder, int switches_fd)
{
	void *p;
	int r;

	if (!is_capable())
		return -EPERM; /* libbpf would print messages */
	b->programs = capture__open();
	if (!b->programs)
		return -errno;
	r = bpf_map__set_max_entries(b->programs->maps.fr_rings, (__u32)libbpf_num_possible_cpus());
	if (r == 0)
		r = bpf_program__set_autoload(b->programs->progs.sample, unwinder != NULL);
	if (r == 0 && switches_fd >= 0)
		r = bpf_map__reuse_fd(b->programs->maps.fr_switches, switches_fd);
	if (r == 0)
		r = share_unwinder(unwinder, b->programs->obj);
	if (r == 0)
		r = capture__load(b->programs);
	if (r < 0)
		return r;
	p = mmap(NULL, shared_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
		bpf_map__fd(b->programs->maps.fr_bpf_shared), 0);
	if (p == MAP_FAILED)
		return -errno;
	b->shared = p;
	return 0;
}

static int add_ring(struct fr_bpf_capture *b, const struct fr_bpf_capture_config *c, size_t i)
{
	struct fr_bpf_ring *ring = &b->rings[i];
	/* Edge-triggered: a level-triggered ring would wake the recorder for each record. */
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = ring};
	int r = fr_bpf_ring_new(ring, c->ring_bytes);

	if (r < 0)
		return r;
	b->n_rings++;
	if (bpf_map_update_elem(bpf_map__fd(b->programs->maps.fr_rings), &c->cpus[i], &ring->fd, BPF_ANY) < 0)
		return -errno;
	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, ring->fd, &e) < 0 ? -errno : 0;
}

static int load_off_cpu(struct fr_bpf_capture *b, const struct fr_bpf_capture_config *c, struct fr_diag *d)
{
	const struct fr_off_cpu_config config = {
		.unwinder = c->unwinder,
		.rings_fd = bpf_map__fd(b->programs->maps.fr_rings),
		.shared_fd = bpf_map__fd(b->programs->maps.fr_bpf_shared),
		.switches_fd = bpf_map__fd(b->programs->maps.fr_switches),
		.slot = c->off_cpu->slot,
		.previous = c->previous ? c->previous->off_cpu : NULL,
		.sleeps_fd = c->sleeps_fd,
		.pids = c->pids,
		.n_pids = c->n_pids,
		.enable_on_exec = c->enable_on_exec,
		.cgroup_fd = c->cgroup_fd,
		.threshold_ns = c->off_cpu->threshold_ns,
	};

	return fr_off_cpu_new(&config, &b->off_cpu, d);
}

static int explain(struct fr_diag *d, int code)
{
	/* EACCES is the verifier's. */
	if (code != -EPERM)
		return fr_fail_errno(d, code, NULL, "cannot load the BPF programs that make samples");
	return fr_fail(d, code,
		is_capable() ? "check the kernel's lockdown, security modules, and seccomp filters "
			       "(SystemCallFilter=)"
			     : "run as root, or give CAP_BPF and CAP_PERFMON (AmbientCapabilities=)",
		"not permitted to load the BPF programs that make samples");
}

int fr_bpf_capture_new(
	const struct fr_bpf_capture_config *config, struct fr_bpf_capture **ret, struct fr_diag *d)
{
	struct fr_bpf_capture *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->unwinder = config->unwinder;
	b->rings = calloc(config->n_cpus, sizeof(*b->rings));
	b->opened = calloc(FR_BPF_EVENTS_MAX, sizeof(*b->opened));
	r = b->rings && b->opened ? load(b, config->unwinder, config->switches_fd) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < config->n_cpus; i++)
		r = add_ring(b, config, i);
	if (r == 0 && config->off_cpu)
		r = load_off_cpu(b, config, d);
	if (r < 0) {
		fr_bpf_capture_free(b);
		return explain(d, r);
	}
	b->shared->version = FR_BPF_SHARED_VERSION;
	b->shared->wakeup_bytes = config->wakeup_bytes;
	*ret = b;
	return 0;
}

struct fr_bpf_capture *fr_bpf_capture_free(struct fr_bpf_capture *b)
{
	if (!b)
		return NULL;
	for (size_t i = 0; i < b->n_opened; i++)
		fr_closep(&b->opened[i].link);
	fr_off_cpu_free(b->off_cpu);
	for (size_t i = 0; i < b->n_rings; i++)
		fr_bpf_ring_free(&b->rings[i]);
	if (b->shared)
		munmap(b->shared, shared_bytes());
	for (size_t i = 0; i < b->n_inherited; i++)
		capture__destroy(b->inherited[i].programs);
	capture__destroy(b->programs);
	free(b->inherited);
	free(b->opened);
	free(b->rings);
	free(b);
	return NULL;
}

static struct fr_bpf_event describe(const struct fr_event *e, int cpu, uint64_t id)
{
	const struct perf_event_attr *a = &e->attr;
	uint32_t flags = a->sample_type & PERF_SAMPLE_PERIOD ? FR_BPF_PERIOD : 0;

	if (a->sample_type & PERF_SAMPLE_CALLCHAIN)
		flags |= FR_BPF_CALLCHAIN | (a->exclude_callchain_kernel ? 0 : FR_BPF_KERNEL_STACK) |
			 (a->exclude_callchain_user ? 0 : FR_BPF_USER_STACK);
	return (struct fr_bpf_event){
		.id = id,
		.cpu = (uint32_t)cpu,
		.slot = e->slot,
		.flags = flags,
		.max_stack = a->sample_max_stack ? FR_MIN(a->sample_max_stack, FR_BPF_STACK_MAX)
						 : FR_BPF_STACK_MAX,
	};
}

static int fail_too_many(struct fr_diag *d)
{
	return fr_fail(d, -E2BIG, "record fewer events with call-graph=unwind",
		"more than %u events on all CPUs with call-graph=unwind", FR_BPF_EVENTS_MAX);
}

/* Returns the instance of the program for the event E, which children inherit; or NULL with errno. */
static struct capture *find_or_load_inherited(struct fr_bpf_capture *b, const struct fr_event *e)
{
	struct inherited *more;
	struct capture *p;
	int r;

	for (size_t i = 0; i < b->n_inherited; i++)
		if (b->inherited[i].event == e)
			return b->inherited[i].programs;
	more = realloc(b->inherited, (b->n_inherited + 1) * sizeof(*more));
	if (!more)
		return NULL;
	b->inherited = more;
	p = capture__open();
	if (!p)
		return NULL;
	more[b->n_inherited++] = (struct inherited){e, p};
	r = fr_bpf_capture_share_maps(b, p->obj);
	if (r == 0)
		r = capture__load(p);
	errno = -r;
	return r == 0 ? p : NULL;
}

int fr_bpf_capture_add(struct fr_bpf_capture *b, const struct fr_event *e, int fd, int cpu, uint64_t id,
	struct fr_counter_cell *cell, struct fr_diag *d)
{
	const size_t i = b->n_opened;
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = i + 1);
	struct capture *programs;
	int link;

	if (i == FR_BPF_EVENTS_MAX)
		return fail_too_many(d);
	programs = e->attr.inherit ? find_or_load_inherited(b, e) : b->programs;
	if (!programs)
		return fr_fail_errno(d, -errno, NULL, "cannot load the BPF program of %s", e->name);
	b->shared->events[i] = describe(e, cpu, id);
	programs->bss->inherited[cpu] = (uint32_t)i + 1;
	/* bpf_program__attach_perf_event_opts() would also enable the event. */
	link = bpf_link_create(bpf_program__fd(programs->progs.sample), fd, BPF_PERF_EVENT, &opts);
	if (link < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot attach a BPF program to %s", e->name);
	b->opened[b->n_opened++] = (struct opened){link, cell};
	b->shared->n_events = (uint32_t)b->n_opened;
	return 0;
}

int fr_bpf_capture_add_off_cpu(struct fr_bpf_capture *b, const struct fr_event *e, int cpu, uint64_t id,
	struct fr_counter_cell *cell, struct fr_diag *d)
{
	const size_t i = b->n_opened;

	if (i == FR_BPF_EVENTS_MAX)
		return fail_too_many(d);
	b->shared->events[i] = describe(e, cpu, id);
	b->opened[b->n_opened++] = (struct opened){-1, cell};
	b->shared->n_events = (uint32_t)b->n_opened;
	fr_off_cpu_set_index(b->off_cpu, e->off_cpu == FR_OFF_CPU_WAKER ? FR_WAKER_EVENT : FR_SLEEP_EVENT,
		cpu, (uint32_t)i);
	return 0;
}

void fr_bpf_capture_enable(struct fr_bpf_capture *b)
{
	if (b && b->off_cpu)
		fr_off_cpu_enable(b->off_cpu);
}

void fr_bpf_capture_disable(struct fr_bpf_capture *b)
{
	if (b && b->off_cpu)
		fr_off_cpu_disable(b->off_cpu);
}

void fr_bpf_capture_set_threshold(struct fr_bpf_capture *b, uint64_t ns)
{
	if (b && b->off_cpu)
		fr_off_cpu_set_threshold(b->off_cpu, ns);
}

int fr_bpf_capture_open_waits(const struct fr_bpf_capture *b)
{
	return b && b->off_cpu ? fr_off_cpu_open_waits(b->off_cpu) : -ENOENT;
}

/* Counts the sleeps that the programs could not follow. Their CPU is not known. */
static void count_untracked(struct fr_bpf_capture *b)
{
	const uint64_t untracked = fr_off_cpu_untracked(b->off_cpu);

	for (size_t i = 0; untracked != b->untracked && i < b->n_opened; i++)
		if (b->opened[i].link < 0) {
			fr_cell_add_lost(b->opened[i].cell, FR_LOSS_SLEEP_TABLE, untracked - b->untracked);
			b->untracked = untracked;
		}
}

static void count_lost(struct fr_bpf_capture *b)
{
	for (size_t i = 0; i < b->n_opened; i++) {
		const uint64_t lost = __atomic_load_n(&b->shared->lost[i], __ATOMIC_RELAXED);

		if (lost == b->shared->counted[i])
			continue;
		fr_cell_add_lost(b->opened[i].cell, FR_LOSS_KERNEL_RING, lost - b->shared->counted[i]);
		b->shared->counted[i] = lost;
	}
	if (b->off_cpu)
		count_untracked(b);
}

size_t fr_bpf_capture_drain(struct fr_bpf_capture *b, struct fr_tally *t, struct fr_counter_cell *owner,
	uint8_t *bounce, fr_run_fn sink, void *ctx)
{
	size_t bytes = 0;

	for (size_t i = 0; i < b->n_rings; i++) {
		t->cpu_index = (unsigned)i;
		bytes += fr_bpf_ring_drain(&b->rings[i], t, owner, bounce, sink, ctx);
	}
	count_lost(b);
	return bytes;
}

void fr_bpf_capture_begin(struct fr_bpf_capture *b, uint64_t since_ns)
{
	__atomic_store_n(&b->shared->from_ns, since_ns, __ATOMIC_RELEASE);
}

void fr_bpf_capture_forget_losses(struct fr_bpf_capture *b)
{
	for (size_t i = 0; i < b->n_opened; i++)
		b->shared->counted[i] = __atomic_load_n(&b->shared->lost[i], __ATOMIC_RELAXED);
}

bool fr_bpf_capture_has_begun(const struct fr_bpf_capture *b)
{
	return b->shared->from_ns != 0;
}

static int add_off_cpu_fds(const struct fr_bpf_capture *b, struct fr_bpf_fds *f)
{
	int links[FR_OFF_CPU_LINKS_MAX], sleeps, r;
	size_t n;

	if (!b->off_cpu)
		return 0;
	n = fr_off_cpu_fds(b->off_cpu, links, &sleeps);
	r = fr_bpf_fds_add(f, FR_BPF_FD_SLEEPS, sleeps);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = fr_bpf_fds_add(f, FR_BPF_FD_LINK, links[i]);
	return r;
}

int fr_bpf_capture_fds(const struct fr_bpf_capture *b, struct fr_bpf_fds *f)
{
	int guards[FR_UNWINDER_LINKS_MAX];
	const size_t n_guards = fr_unwinder_links(b->unwinder, guards);
	int r = fr_bpf_fds_add(f, FR_BPF_FD_SHARED, bpf_map__fd(b->programs->maps.fr_bpf_shared));

	for (size_t i = 0; r == 0 && i < b->n_rings; i++)
		r = fr_bpf_fds_add(f, FR_BPF_FD_RING, b->rings[i].fd);
	for (size_t i = 0; r == 0 && i < b->n_opened; i++)
		if (b->opened[i].link >= 0)
			r = fr_bpf_fds_add(f, FR_BPF_FD_LINK, b->opened[i].link);
	for (size_t i = 0; r == 0 && i < n_guards; i++)
		r = fr_bpf_fds_add(f, FR_BPF_FD_GUARD, guards[i]);
	return r == 0 ? add_off_cpu_fds(b, f) : r;
}

struct fr_bpf_shared *fr_bpf_capture_shared(struct fr_bpf_capture *b)
{
	return b->shared;
}
