// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A raw tracepoint has its own program, which can only record one event. So the n-th event of each raw
 * tracepoint is recorded by the n-th instance of the BPF object. The first instance also has the program of
 * all other tracepoints, which knows its event by the cookie of its link.
 */
#include "capture/bpf_tracepoint.h"
#include "capture/bpf_capture.h"
#include "capture/event_internal.h"
#include "capture/perf_open.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "bpf/capture.h"

#include "capture-tracepoint.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* Our ids are far away from the kernel's, which begin with 1, but each contains an id of the kernel, so it is
   never used again. */
#define ID_BASE (0xf2ULL << 56)
#define MISSES_PERIOD_NS (FR_NSEC_PER_SEC / 10)

struct instance {
	struct capture_tracepoint *object;
	int links[FR_BPF_ANY_TRACEPOINT]; /* of raw tracepoints; 0: none */
	uint64_t missed[_FR_BPF_TRACEPOINT_KINDS];
};

struct fr_bpf_tracepoints {
	struct fr_bpf_tracepoints_config config;
	struct fr_bpf_plan *plans;
	size_t n;
	struct instance *instances;
	size_t n_instances, n_possible;
	int table_fd, lost_fd;
	struct fr_bpf_tracepoint *table; /* mapped; [n] */
	/* Mapped, [n * n_possible] each, one behind the other: the next instance needs both. */
	uint64_t *lost;
	uint64_t *counted;  /* the part of `lost` that the cells have */
	uint64_t misses_ns; /* when the misses of the programs were counted */
};

static size_t round_to_pages(size_t bytes)
{
	return FR_ALIGN_UP(bytes, (size_t)sysconf(_SC_PAGESIZE));
}

/* Makes an array with N values of SIZE bytes. Returns its memory, or NULL with errno. */
static void *make_array(const char *name, size_t size, size_t n, int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	void *p;

	*ret_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), (__u32)size, (__u32)n, &opts);
	if (*ret_fd < 0)
		return NULL;
	p = mmap(NULL, round_to_pages(size * n), PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

static struct bpf_program *find_program(struct capture_tracepoint *o, unsigned kind)
{
	struct bpf_program *const programs[] = {
		[FR_BPF_SYS_ENTER] = o->progs.sys_enter,
		[FR_BPF_SYS_EXIT] = o->progs.sys_exit,
		[FR_BPF_SCHED_SWITCH] = o->progs.sched_switch,
		[FR_BPF_SCHED_WAKING] = o->progs.sched_waking,
		[FR_BPF_CALL_ENTER] = o->progs.call_enter,
		[FR_BPF_CALL_EXIT] = o->progs.call_exit,
		[FR_BPF_ANY_TRACEPOINT] = o->progs.any_tracepoint,
	};

	return programs[kind];
}

/* Sets the instance of each plan. Returns the number of instances. */
static size_t choose_instances(struct fr_bpf_tracepoints *b)
{
	size_t n = 1;

	for (size_t i = 0; i < b->n; i++) {
		struct fr_bpf_plan *p = &b->plans[i];

		for (size_t k = 0; p->kind != FR_BPF_ANY_TRACEPOINT && k < i; k++)
			if (b->plans[k].kind == p->kind && b->plans[k].call == p->call)
				p->instance = b->plans[k].instance + 1;
		n = FR_MAX(n, p->instance + 1);
	}
	return n;
}

static bool is_call(const struct fr_bpf_plan *p)
{
	return p->kind == FR_BPF_CALL_ENTER || p->kind == FR_BPF_CALL_EXIT;
}

/* Chooses the programs of the instance NTH, and sets their constants. */
static void configure(struct fr_bpf_tracepoints *b, size_t nth, struct capture_tracepoint *o)
{
	bool is_used[_FR_BPF_TRACEPOINT_KINDS] = {false};

	o->rodata->fr_n_cpus = (__u32)b->n_possible;
	o->rodata->fr_has_cgroup = b->config.cgroup_fd >= 0;
	o->rodata->fr_has_unwind = false;
	for (size_t i = 0; i < b->n; i++) {
		const struct fr_bpf_plan *p = &b->plans[i];

		if (p->instance != nth)
			continue;
		is_used[p->kind] = true;
		o->rodata->fr_event_of[p->kind] = (__u32)i;
		if (is_call(p))
			o->rodata->fr_event_of_call[p->kind - FR_BPF_CALL_ENTER][p->call] = (__u16)(i + 1);
		o->rodata->fr_has_stack[p->kind] |= !!(p->entry.flags & FR_BPF_CALLCHAIN);
		o->rodata->fr_has_unwind |= b->config.events[p->event].unwind;
	}
	for (unsigned k = 0; k < _FR_BPF_TRACEPOINT_KINDS; k++)
		bpf_program__set_autoload(find_program(o, k), is_used[k]);
}

static int load(struct fr_bpf_tracepoints *b, size_t nth, const struct fr_bpf_capture *capture)
{
	struct capture_tracepoint *o = capture_tracepoint__open();
	const __u32 zero = 0;
	int r;

	if (!o)
		return -errno;
	b->instances[b->n_instances++].object = o;
	configure(b, nth, o);
	r = fr_bpf_capture_share_maps(capture, o->obj);
	if (r == 0)
		r = bpf_map__reuse_fd(o->maps.fr_tracepoints, b->table_fd);
	if (r == 0)
		r = bpf_map__reuse_fd(o->maps.fr_tracepoint_lost, b->lost_fd);
	if (r == 0)
		r = bpf_map__set_autocreate(o->maps.fr_cgroup, b->config.cgroup_fd >= 0);
	if (r == 0)
		r = capture_tracepoint__load(o);
	if (r == 0 && b->config.cgroup_fd >= 0)
		r = bpf_map__update_elem(o->maps.fr_cgroup, &zero, sizeof(zero), &b->config.cgroup_fd,
			sizeof(b->config.cgroup_fd), BPF_ANY);
	return r;
}

/* Returns the element of p->entry.probe for the kernel's function NAME; NULL: there is none. */
static struct fr_bpf_code *find_probe(struct fr_bpf_plan *p, const char *name)
{
	static const char *const run[] = {[FR_BPF_SYS_ENTER] = "bpf_trace_run2",
		[FR_BPF_SYS_EXIT] = "bpf_trace_run2",
		[FR_BPF_SCHED_SWITCH] = "bpf_trace_run4",
		[FR_BPF_SCHED_WAKING] = "bpf_trace_run1"};

	if (p->kind >= FR_ARRAY_SIZE(run))
		return NULL;
	if (!strcmp(name, run[p->kind]))
		return &p->entry.probe[0];
	if (!strncmp(name, "__bpf_trace_", 12) && !strcmp(name + 12, p->name))
		return &p->entry.probe[1];
	if (!strncmp(name, "__traceiter_", 12) && !strcmp(name + 12, p->name))
		return &p->entry.probe[2];
	return NULL;
}

/* Finds the code between raw tracepoints and their programs in the kernel's symbols, which are sorted by
   address. If they cannot be read, call chains begin with these functions. */
static void find_probe_code(struct fr_bpf_tracepoints *b)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address, begin = 0;
	char line[512], name[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %*c %255s", &address, name) != 2 || !address)
			continue;
		for (size_t i = 0; begin && address > begin && i < b->n; i++)
			for (size_t k = 0; k < FR_ARRAY_SIZE(b->plans[i].entry.probe); k++)
				if (b->plans[i].entry.probe[k].start == begin)
					b->plans[i].entry.probe[k].end = address;
		begin = address > begin ? 0 : begin;
		if (!strstr(name, "bpf_trace_") && strncmp(name, "__traceiter_", 12) != 0)
			continue;
		for (size_t i = 0; i < b->n; i++) {
			struct fr_bpf_code *code = find_probe(&b->plans[i], name);

			if (code)
				code->start = begin = address;
		}
	}
}

/* Opens the event that gives the plan its id: the tracepoint, to which the program is attached; or, for a raw
   tracepoint, an event that costs nothing, because perf's tracepoint would run beside the program. */
static int open_holder(struct fr_bpf_tracepoints *b, struct fr_bpf_plan *p, struct fr_diag *d)
{
	const struct fr_event *e = &b->config.events[p->event];
	struct perf_event_attr a = e->attr;
	uint64_t id;

	if (p->kind != FR_BPF_ANY_TRACEPOINT) {
		fr_event_attr_init(&a);
		a.type = PERF_TYPE_SOFTWARE;
		a.config = PERF_COUNT_SW_DUMMY;
		a.sample_period = 1;
	}
	a.sample_type &= ~(__u64)PERF_SAMPLE_CALLCHAIN;
	a.sample_max_stack = 0;
	p->holder = fr_perf_open_adapt(&a, -1, b->config.cpus[0], 0);
	if (p->holder < 0)
		return fr_explain_open(d, p->holder, e, b->config.cpus[0], -1);
	if (ioctl(p->holder, PERF_EVENT_IOC_ID, &id) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot read the id of %s", e->name);
	p->entry.first_id = ID_BASE | id << FR_BPF_ID_CPU_BITS;
	return 0;
}

/* Attaches the program KIND of an instance, if it is loaded, to its raw tracepoint. */
static int attach_raw(struct instance *in, unsigned kind)
{
	const int program = bpf_program__fd(find_program(in->object, kind));

	if (program < 0)
		return 0;
	in->links[kind] = bpf_raw_tracepoint_open(NULL, program);
	return in->links[kind] < 0 ? -errno : 0;
}

static int attach_any(struct fr_bpf_tracepoints *b, size_t i)
{
	struct fr_bpf_plan *p = &b->plans[i];
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = i);

	p->link = bpf_link_create(bpf_program__fd(b->instances[0].object->progs.any_tracepoint), p->holder,
		BPF_PERF_EVENT, &opts);
	return p->link < 0 ? -errno : 0;
}

static int attach_all(struct fr_bpf_tracepoints *b, struct fr_diag *d)
{
	int r = 0;

	for (size_t i = 0; i < b->n_instances; i++)
		for (unsigned k = 0; r == 0 && k < FR_BPF_ANY_TRACEPOINT; k++)
			r = attach_raw(&b->instances[i], k);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot attach a BPF program to a raw tracepoint");
	for (size_t i = 0; r == 0 && i < b->n; i++)
		if (b->plans[i].kind == FR_BPF_ANY_TRACEPOINT) {
			r = attach_any(b, i);
			if (r < 0)
				return fr_fail_errno(d, r, NULL, "cannot attach a BPF program to %s",
					b->config.events[b->plans[i].event].name);
		}
	return r;
}

static int open_all(struct fr_bpf_tracepoints *b, const struct fr_bpf_capture *capture, struct fr_diag *d)
{
	const size_t n_instances = choose_instances(b);
	int r = 0;

	b->instances = calloc(n_instances, sizeof(*b->instances));
	if (!b->instances)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < b->n; i++)
		r = open_holder(b, &b->plans[i], d);
	if (r < 0)
		return r;
	find_probe_code(b);
	b->table = make_array("fr_tracepoints", sizeof(*b->table), b->n, &b->table_fd);
	b->lost = make_array("fr_tp_lost", sizeof(*b->lost), 2 * b->n * b->n_possible, &b->lost_fd);
	if (!b->table || !b->lost)
		return fr_fail_errno(d, -errno, NULL, "cannot make the BPF maps of tracepoints");
	b->counted = b->lost + b->n * b->n_possible;
	for (size_t i = 0; i < b->n; i++) {
		b->table[i] = b->plans[i].entry;
		b->table[i].slot = b->config.events[b->plans[i].event].slot;
	}
	for (size_t i = 0; r == 0 && i < n_instances; i++)
		r = load(b, i, capture);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot load the BPF programs of tracepoints");
	return attach_all(b, d);
}

int fr_bpf_tracepoints_new(const struct fr_bpf_tracepoints_config *config, struct fr_bpf_plan *plans,
	size_t n, const struct fr_bpf_capture *capture, struct fr_bpf_tracepoints **ret, struct fr_diag *d)
{
	struct fr_bpf_tracepoints *b = calloc(1, sizeof(*b));
	int r;

	if (!b) {
		free(plans);
		return -ENOMEM;
	}
	*b = (struct fr_bpf_tracepoints){.config = *config,
		.plans = plans,
		.n = n,
		.n_possible = (size_t)libbpf_num_possible_cpus(),
		.table_fd = -1,
		.lost_fd = -1};
	r = open_all(b, capture, d);
	if (r < 0) {
		fr_bpf_tracepoints_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

struct fr_bpf_tracepoints *fr_bpf_tracepoints_free(struct fr_bpf_tracepoints *b)
{
	if (!b)
		return NULL;
	for (size_t i = 0; i < b->n; i++) {
		fr_closep(&b->plans[i].link);
		fr_closep(&b->plans[i].holder);
	}
	for (size_t i = 0; i < b->n_instances; i++) {
		for (unsigned k = 0; k < FR_ARRAY_SIZE(b->instances[i].links); k++)
			if (b->instances[i].links[k] > 0)
				close(b->instances[i].links[k]);
		capture_tracepoint__destroy(b->instances[i].object);
	}
	if (b->table)
		munmap(b->table, round_to_pages(b->n * sizeof(*b->table)));
	if (b->lost)
		munmap(b->lost, round_to_pages(2 * b->n * b->n_possible * sizeof(*b->lost)));
	fr_closep(&b->table_fd);
	fr_closep(&b->lost_fd);
	free(b->instances);
	free(b->plans);
	free(b);
	return NULL;
}

int fr_bpf_tracepoints_foreach_id(const struct fr_bpf_tracepoints *b, fr_bpf_id_fn fn, void *ctx)
{
	int r = 0;

	for (size_t i = 0; b && i < b->n; i++)
		for (size_t k = 0; r >= 0 && k < b->config.n_sampled; k++)
			r = fn(ctx, b->plans[i].entry.first_id + (unsigned)b->config.cpus[k],
				b->plans[i].event, (uint32_t)k);
	return r < 0 ? r : 0;
}

int fr_bpf_tracepoints_fds(
	const struct fr_bpf_tracepoints *b, struct fr_bpf_shared *shared, struct fr_bpf_fds *f)
{
	int r = b ? fr_bpf_fds_add(f, FR_BPF_FD_LOST, b->lost_fd) : 0;

	for (size_t i = 0; b && r == 0 && i < b->n_instances; i++)
		for (unsigned k = 0; r == 0 && k < FR_ARRAY_SIZE(b->instances[i].links); k++)
			if (b->instances[i].links[k] > 0)
				r = fr_bpf_fds_add(f, FR_BPF_FD_LINK, b->instances[i].links[k]);
	for (size_t i = 0; b && r == 0 && i < b->n; i++) {
		if (b->plans[i].link >= 0)
			r = fr_bpf_fds_add(f, FR_BPF_FD_LINK, b->plans[i].link);
		shared->tracepoint_ids[i] = b->plans[i].entry.first_id;
	}
	shared->n_tracepoints = b ? (uint32_t)b->n : 0;
	return r;
}

int fr_bpf_tracepoints_exclude(struct fr_bpf_tracepoints *b, const pid_t *tids, size_t n)
{
	if (n > FR_BPF_OWN_MAX)
		return -E2BIG;
	for (size_t i = 0; b && n && i < b->n; i++) {
		memcpy(b->table[i].own_tids, tids, n * sizeof(*tids));
		b->table[i].own_tgid = (uint32_t)getpid();
	}
	return 0;
}

void fr_bpf_tracepoints_enable(struct fr_bpf_tracepoints *b, bool enable)
{
	for (size_t i = 0; b && i < b->n; i++)
		__atomic_store_n(&b->table[i].is_enabled, enable, __ATOMIC_RELEASE);
}

/* Counts how often the kernel did not run a program, because it ran already on the CPU. The kernel does not
   say which CPU, nor, for the program of all other tracepoints, which event. */
static void count_misses(struct fr_bpf_tracepoints *b)
{
	for (size_t i = 0; i < b->n_instances; i++)
		for (unsigned k = 0; k < _FR_BPF_TRACEPOINT_KINDS; k++) {
			struct instance *in = &b->instances[i];
			const size_t event = b->plans[in->object->rodata->fr_event_of[k]].event;
			struct bpf_prog_info info = {0};
			__u32 len = sizeof(info);
			const int fd = bpf_program__fd(find_program(in->object, k));

			if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
				continue;
			fr_cell_add_lost(&b->config.cells[event * b->config.n_cpus], FR_LOSS_KERNEL_RING,
				info.recursion_misses - in->missed[k]);
			in->missed[k] = info.recursion_misses;
		}
}

void fr_bpf_tracepoints_forget_losses(struct fr_bpf_tracepoints *b)
{
	for (size_t i = 0; b && i < b->n * b->n_possible; i++)
		b->counted[i] = __atomic_load_n(&b->lost[i], __ATOMIC_RELAXED);
}

void fr_bpf_tracepoints_count_lost(struct fr_bpf_tracepoints *b)
{
	const uint64_t now = fr_monotonic_ns();

	if (now - b->misses_ns >= MISSES_PERIOD_NS) {
		b->misses_ns = now;
		count_misses(b);
	}
	for (size_t i = 0; i < b->n; i++)
		for (size_t k = 0; k < b->config.n_sampled; k++) {
			const size_t at = i * b->n_possible + (size_t)b->config.cpus[k];
			const uint64_t lost = __atomic_load_n(&b->lost[at], __ATOMIC_RELAXED);

			if (lost == b->counted[at])
				continue;
			fr_cell_add_lost(&b->config.cells[b->plans[i].event * b->config.n_cpus + k],
				FR_LOSS_KERNEL_RING, lost - b->counted[at]);
			b->counted[at] = lost;
		}
}
