// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/off_cpu.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/pidns.h"
#include "unwind/unwinder.h"

#include "sleep.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define CGROUP2_MAGIC 0x63677270

/* The table has room for this many times the threads that there are now. */
#define ROOM 4u
#define SLOTS_MIN 32768u
#define SLOTS_MAX (1u << 20)
#define INTERRUPT_RING_BYTES 4096u

struct fr_off_cpu {
	struct sleep *programs;
	bool enable_on_exec;
};

static int explain(struct fr_diag *d, int code)
{
	if (code == -EPERM)
		return code; /* the caller has the hint */
	return fr_fail_errno(d, code,
		"the event needs x86-64 and Linux 6.1 or later, with CONFIG_DEBUG_INFO_BTF",
		"cannot load the BPF programs of the event offcpu");
}

/* Returns the number of slots of the table: a power of two. A thread that starts later needs a slot, too. */
static uint32_t choose_slots(void)
{
	char line[128], *slash;
	unsigned long threads = 0;
	uint32_t slots = SLOTS_MIN;

	if (fr_read_line("/proc/loadavg", line, sizeof(line)) >= 0 && (slash = strchr(line, '/')))
		threads = strtoul(slash + 1, NULL, 10);
	while (slots < SLOTS_MAX && slots < threads * ROOM)
		slots *= 2;
	return slots;
}

/* Returns the offset of the variable NAME in the data of each CPU; 0: there is none. */
static int64_t find_offset(const struct btf *btf, const char *name)
{
	const int section = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	const struct btf_type *t = section < 0 ? NULL : btf__type_by_id(btf, (__u32)section);
	const struct btf_var_secinfo *v = t ? btf_var_secinfos(t) : NULL;

	for (unsigned i = 0; t && i < btf_vlen(t); i++) {
		const struct btf_type *var = btf__type_by_id(btf, v[i].type);

		if (var && !strcmp(btf__name_by_offset(btf, var->name_off), name))
			return v[i].offset;
	}
	return 0;
}

/* Returns the distance from a CPU's run queue to its preempt count; 0: not known. From 6.2 to 6.14, the count
   is a member of pcpu_hot, after a pointer. */
static int64_t find_preempt_count(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int64_t count, rq;

	if (!btf)
		return 0;
	rq = find_offset(btf, "runqueues");
	count = find_offset(btf, "__preempt_count");
	if (!count && (count = find_offset(btf, "pcpu_hot")))
		count += (int64_t)sizeof(void *);
	btf__free(btf);
	return rq && count ? count - rq : 0;
}

static int reuse(struct bpf_map *map, int fd)
{
	const int r = bpf_map__reuse_fd(map, fd);

	return r < 0 ? r : 0;
}

/* Returns the table of sleeps that the programs share with other ones; -1: there is none, or that of the
   previous instance is of another version. */
static int find_sleeps(const struct fr_off_cpu_config *c)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);

	if (c->previous)
		return bpf_map__fd(c->previous->programs->maps.sleeps);
	if (c->sleeps_fd < 0 || bpf_obj_get_info_by_fd(c->sleeps_fd, &info, &len) < 0 ||
		info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(struct fr_sleep) ||
		info.max_entries & (info.max_entries - 1))
		return -1;
	return c->sleeps_fd;
}

static int set_sleeps(struct sleep *p, const struct fr_off_cpu_config *c)
{
	const int fd = find_sleeps(c);
	uint32_t slots;
	int r;

	if (fd >= 0) {
		r = reuse(p->maps.sleeps, fd);
		slots = bpf_map__max_entries(p->maps.sleeps);
	} else {
		slots = choose_slots();
		r = bpf_map__set_max_entries(p->maps.sleeps, slots);
	}
	p->rodata->sleeps_mask = slots - 1;
	return r;
}

/* Prepares the programs for the load. */
static int set_up(struct sleep *p, const struct fr_off_cpu_config *c)
{
	const bool by_pid = c->n_pids > 0;
	int r;

	p->rodata->own_tgid = (__u32)getpid();
	p->rodata->by_pid = by_pid;
	p->rodata->slot_of_event = c->slot;
	p->rodata->by_cgroup = c->cgroup_fd >= 0;
	p->rodata->preempt_count_offset = find_preempt_count();
	p->bss->threshold_ns = c->threshold_ns;
	bpf_program__set_autoload(p->progs.sched_process_fork, by_pid);
	bpf_program__set_autoload(p->progs.sched_process_free, by_pid);
	bpf_program__set_autoload(p->progs.sched_process_exec, by_pid && c->enable_on_exec);
	r = set_sleeps(p, c);
	if (r == 0)
		r = reuse(p->maps.fr_rings, c->rings_fd);
	if (r == 0)
		r = reuse(p->maps.fr_bpf_shared, c->shared_fd);
	if (r == 0)
		r = reuse(p->maps.fr_switches, c->switches_fd);
	if (r == 0)
		r = bpf_map__set_max_entries(p->maps.interrupts, (__u32)libbpf_num_possible_cpus());
	if (r == 0 && c->unwinder)
		r = fr_unwinder_share_maps(c->unwinder, p->obj);
	return r;
}

static int add_interrupts(struct sleep *p)
{
	const int n = libbpf_num_possible_cpus();
	int r = 0;

	for (int cpu = 0; r == 0 && cpu < n; cpu++) {
		_cleanup_close_ int fd = bpf_map_create(
			BPF_MAP_TYPE_USER_RINGBUF, "interrupt", 0, 0, INTERRUPT_RING_BYTES, NULL);

		if (fd < 0 || bpf_map_update_elem(bpf_map__fd(p->maps.interrupts), &cpu, &fd, BPF_ANY) < 0)
			r = -errno;
	}
	return r;
}

static int add_targets(struct sleep *p, const struct fr_off_cpu_config *c)
{
	const __u32 zero = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_pids; i++)
		if (bpf_map_update_elem(bpf_map__fd(p->maps.pids), &c->pids[i], &zero, BPF_ANY) < 0)
			r = -errno;
	if (r == 0 && c->cgroup_fd >= 0 &&
		bpf_map_update_elem(bpf_map__fd(p->maps.cgroups), &zero, &c->cgroup_fd, BPF_ANY) < 0)
		r = -errno;
	return r;
}

static int check_cgroup(int fd, struct fr_diag *d)
{
	struct statfs s;

	if (fd < 0 || (fstatfs(fd, &s) == 0 && s.f_type == CGROUP2_MAGIC))
		return 0;
	return fr_fail(d, -EOPNOTSUPP, "give a cgroup of version 2, or leave out the event offcpu: OffCPU=no",
		"the event offcpu cannot be limited to a cgroup of version 1");
}

/* The pids in samples are those of the first pid namespace, and side-band has those of this process. */
static int check_pidns(struct fr_diag *d)
{
	if (!fr_own_pidns())
		return 0;
	return fr_fail(d, -EOPNOTSUPP,
		"run flightrecd in the first pid namespace, or leave out the event offcpu: OffCPU=no",
		"the event offcpu cannot be recorded in a pid namespace");
}

int fr_off_cpu_new(const struct fr_off_cpu_config *config, struct fr_off_cpu **ret, struct fr_diag *d)
{
	struct fr_off_cpu *o;
	int r = check_cgroup(config->cgroup_fd, d);

	if (r == 0)
		r = check_pidns(d);
	if (r < 0)
		return r;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->enable_on_exec = config->enable_on_exec && config->n_pids;
	o->programs = sleep__open();
	r = o->programs ? set_up(o->programs, config) : -errno;
	if (r == 0)
		r = sleep__load(o->programs);
	if (r == 0)
		r = add_interrupts(o->programs);
	if (r == 0)
		r = add_targets(o->programs, config);
	if (r == 0)
		r = sleep__attach(o->programs);
	if (r < 0) {
		fr_off_cpu_free(o);
		return explain(d, r);
	}
	*ret = o;
	return 0;
}

struct fr_off_cpu *fr_off_cpu_free(struct fr_off_cpu *o)
{
	if (!o)
		return NULL;
	sleep__destroy(o->programs);
	free(o);
	return NULL;
}

void fr_off_cpu_set_index(struct fr_off_cpu *o, unsigned which, int cpu, uint32_t index)
{
	/* The programs take a value of 0 for a CPU that is not recorded. */
	o->programs->bss->indexes[which][cpu] = index + 1;
}

void fr_off_cpu_enable(struct fr_off_cpu *o)
{
	if (!o->enable_on_exec)
		__atomic_store_n(&o->programs->bss->on, 1, __ATOMIC_RELEASE);
}

void fr_off_cpu_disable(struct fr_off_cpu *o)
{
	__atomic_store_n(&o->programs->bss->on, 0, __ATOMIC_RELEASE);
}

void fr_off_cpu_set_threshold(struct fr_off_cpu *o, uint64_t ns)
{
	__atomic_store_n(&o->programs->bss->threshold_ns, ns, __ATOMIC_RELAXED);
}

int fr_off_cpu_open_waits(const struct fr_off_cpu *o)
{
	const int fd = bpf_iter_create(bpf_link__fd(o->programs->links.waiting));

	return fd < 0 ? -errno : fd;
}

size_t fr_off_cpu_fds(const struct fr_off_cpu *o, int ret[static FR_OFF_CPU_LINKS_MAX], int *ret_sleeps)
{
	struct bpf_link *const links[FR_OFF_CPU_LINKS_MAX] = {o->programs->links.sched_switch,
		o->programs->links.irq_work_entry, o->programs->links.sched_waking,
		o->programs->links.sched_process_fork, o->programs->links.sched_process_free,
		o->programs->links.sched_process_exec};
	size_t n = 0;

	for (size_t i = 0; i < FR_OFF_CPU_LINKS_MAX; i++)
		if (links[i])
			ret[n++] = bpf_link__fd(links[i]);
	*ret_sleeps = bpf_map__fd(o->programs->maps.sleeps);
	return n;
}

uint64_t fr_off_cpu_untracked(const struct fr_off_cpu *o)
{
	return __atomic_load_n(&o->programs->bss->untracked, __ATOMIC_RELAXED);
}
