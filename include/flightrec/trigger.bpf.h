/* SPDX-License-Identifier: MIT */
#ifndef FLIGHTREC_TRIGGER_BPF_H
#define FLIGHTREC_TRIGGER_BPF_H

/*
 * The trigger ABI of flightrec: a BPF object that includes this header and calls flightrec_trigger() makes
 * flightrecd dump. See flightrec(7) for an example, flightrecd.conf(5) for the section that loads it:
 *
 *     [Trigger slow-disk]
 *     Program=/etc/flightrec/slow-disk.bpf.o
 *     Threshold=20ms
 *
 * Include "vmlinux.h", or <linux/bpf.h>, before it. Where FLIGHTREC_UNIT is defined before it, values and
 * Threshold= are of that unit (FLIGHTREC_UNIT_NS …). Compile with clang -target bpf -mcpu=v3 -g -O2.
 *
 * flightrecd loads the object, sets the globals below and those of Set=NAME=VALUE, attaches every program by
 * its SEC() name, and reads the ring buffer. The object needs a license that its helpers want ("GPL" for
 * tracing). Of its programs
 *
 *   - NAME_btf and NAME_classic are two of one purpose: where the kernel has BTF and the tracepoint of
 *     NAME_btf, that one is loaded, else the other;
 *   - SEC("?...") is one that is left out where the kernel has not its tracepoint;
 *   - any other must find its tracepoint, or the object is refused with the tracepoint's name.
 *
 * What a program of SEC("tracepoint/...") (not tp_btf, raw_tp) returns is of no matter. Where it is 0 the
 * kernel keeps the event from all who record that tracepoint with perf, and flightrecd is one of them; so
 * flightrecd has every one return 1.
 *
 * Runs on Linux 5.12 and later, with or without BTF in the kernel. Without it, a flightrecd in a pid
 * namespace of its own cannot know pids, and CGroup= is that group alone.
 *
 * User space, that is flightrecd, includes this file for the structures.
 */

#define FLIGHTREC_TRIGGER_ABI 1

#define FLIGHTREC_COMM_SIZE 16
#define FLIGHTREC_REASON_SIZE 64
#define FLIGHTREC_DETAIL_SIZE 64

/* What a value and a threshold count. */
enum flightrec_unit {
	FLIGHTREC_UNIT_NONE = 0,
	FLIGHTREC_UNIT_NS = 1,
	FLIGHTREC_UNIT_COUNT = 2,
	FLIGHTREC_UNIT_BYTES = 3,
	FLIGHTREC_UNIT_PERCENT = 4,
};

/* One firing, as it lies in the ring buffer. Host byte order. Members are added at the end only, SIZE tells
   how many there are. Strings end with a NUL. */
struct flightrec_event {
	__u32 abi;     /* FLIGHTREC_TRIGGER_ABI */
	__u32 size;    /* of this structure */
	__u64 time_ns; /* CLOCK_MONOTONIC: the instant of the anomaly */
	__u64 value, threshold;
	__u64 cgroup_id; /* 0: not known */
	__u32 pid, tid;	 /* as flightrecd's pid namespace sees them; 0: not known there */
	__u32 cpu;
	__u32 unit; /* enum flightrec_unit */
	char comm[FLIGHTREC_COMM_SIZE];
	char reason[FLIGHTREC_REASON_SIZE]; /* in words, what happened: "run-queue latency" */
	char detail[FLIGHTREC_DETAIL_SIZE]; /* of what: a device, a system call; may be empty */
};

/* Counters of one CPU, in the map flightrec_counters. A value that reached the threshold and that no filter
   held back is in exactly one of sent, cooled and lost, so what fired is their sum at any moment. */
struct flightrec_counters {
	__u64 sent;    /* in the ring buffer */
	__u64 cooled;  /* within the cool-down of an earlier one */
	__u64 lost;    /* the ring buffer was full */
	__u64 last;    /* the newest value, whether or not it reached the threshold */
	__u64 last_ns; /* when, CLOCK_MONOTONIC; 0: none yet */
};

#ifdef __bpf__

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#ifndef FLIGHTREC_UNIT
#define FLIGHTREC_UNIT FLIGHTREC_UNIT_NONE
#endif

/* Set by flightrecd before the object is loaded. Constants for the verifier: a filter that is not set costs
   nothing. */
#define FLIGHTREC_GLOBAL SEC(".rodata.flightrec")
const volatile __u32 flightrec_abi FLIGHTREC_GLOBAL = FLIGHTREC_TRIGGER_ABI;
const volatile __u32 flightrec_unit FLIGHTREC_GLOBAL = FLIGHTREC_UNIT; /* read by flightrecd */
const volatile __u64 flightrec_threshold FLIGHTREC_GLOBAL = 0;	       /* Threshold= */
const volatile __u64 flightrec_cooldown_ns FLIGHTREC_GLOBAL = 0;       /* quiet for so long after a firing */
const volatile __u32 flightrec_pid FLIGHTREC_GLOBAL = 0;	       /* Pid=: only this process; 0: any */
const volatile __u64 flightrec_cgroup FLIGHTREC_GLOBAL = 0; /* CGroup=: in or below this id; 0: any */
const volatile char flightrec_comm[FLIGHTREC_COMM_SIZE] FLIGHTREC_GLOBAL = ""; /* Comm=; "": any */
const volatile __u32 flightrec_self FLIGHTREC_GLOBAL = 0;  /* flightrecd's own process never fires */
const volatile __u32 flightrec_pidns FLIGHTREC_GLOBAL = 0; /* inode of its pid namespace; 0: the first */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} flightrec_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flightrec_counters);
} flightrec_counters SEC(".maps");

static __u64 flightrec_next_ns; /* no firing before */

/* The parts of the kernel's structures that are read here; the suffix is CO-RE's way to have them beside
   those of vmlinux.h. */
#define FLIGHTREC_CORE __attribute__((preserve_access_index))
struct ns_common___flightrec {
	unsigned int inum;
} FLIGHTREC_CORE;
struct pid_namespace___flightrec {
	struct ns_common___flightrec ns;
} FLIGHTREC_CORE;
struct upid___flightrec {
	int nr;
	struct pid_namespace___flightrec *ns;
} FLIGHTREC_CORE;
struct pid___flightrec {
	unsigned int level;
	struct upid___flightrec numbers[1];
} FLIGHTREC_CORE;
struct kernfs_node___flightrec {
	__u64 id;
} FLIGHTREC_CORE;
struct cgroup_subsys_state___flightrec {
	struct cgroup_subsys_state___flightrec *parent;
} FLIGHTREC_CORE;
struct cgroup___flightrec {
	struct cgroup_subsys_state___flightrec self; /* begins the kernel's structure, so it is its address */
	struct kernfs_node___flightrec *kn;
} FLIGHTREC_CORE;
struct css_set___flightrec {
	struct cgroup___flightrec *dfl_cgrp;
} FLIGHTREC_CORE;
struct task_struct___flightrec {
	int pid, tgid;
	char comm[FLIGHTREC_COMM_SIZE];
	struct pid___flightrec *thread_pid;
	struct task_struct___flightrec *group_leader;
	struct css_set___flightrec *cgroups;
} FLIGHTREC_CORE;

/* Of whom an event tells. Zero-initialise it. */
struct flightrec_subject {
	__u32 pid, tid; /* of the first pid namespace, or with `ours` of flightrecd's */
	__u64 cgroup_id;
	char comm[FLIGHTREC_COMM_SIZE];
	const void *task; /* its struct task_struct while that lives; 0: the current one, if TID is its */
	__u32 ours;	  /* flightrec_localize() was here */
	__u32 inside;	  /* and found it in flightrec_cgroup, or below it */
};

/* The number of TASK in flightrecd's pid namespace; 0: it is not seen from there. Levels past 32 do not exist
   (MAX_PID_NS_LEVEL). */
static __always_inline __u32 flightrec_nr(const struct task_struct___flightrec *task)
{
	const struct pid___flightrec *pid = BPF_CORE_READ(task, thread_pid);
	const struct upid___flightrec *number;
	unsigned int level;

	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	number = __builtin_preserve_access_index(&pid->numbers[0]);
	for (unsigned int i = 0; i <= 32 && i <= level; i++) {
		if (BPF_CORE_READ(number, ns, ns.inum) == flightrec_pidns)
			return BPF_CORE_READ(number, nr);
		number = (const void *)number + bpf_core_type_size(struct upid___flightrec);
	}
	return 0;
}

/* S is in flightrec_cgroup or below it. What is below is found by its task. */
static __always_inline int flightrec_in_cgroup(const struct flightrec_subject *s)
{
	const struct task_struct___flightrec *task = s->task;
	const struct cgroup_subsys_state___flightrec *css;

	if (s->cgroup_id == flightrec_cgroup)
		return 1;
	if (!task || !bpf_core_field_exists(task->cgroups))
		return 0;
	css = (const void *)BPF_CORE_READ(task, cgroups, dfl_cgrp);
	for (int i = 0; i < 16 && css; i++) {
		if (BPF_CORE_READ((const struct cgroup___flightrec *)css, kn, id) == flightrec_cgroup)
			return 1;
		css = BPF_CORE_READ(css, parent);
	}
	return 0;
}

/* Turn pid and tid into what flightrecd's pid namespace calls them, and look whether it is of CGroup=.
   flightrec_trigger_for() does so itself, when it fires; to be called earlier where a subject is kept past
   the life of its task, at which nothing looks from then on. */
static __always_inline void flightrec_localize(struct flightrec_subject *s)
{
	const struct task_struct___flightrec *task;

	if (s->ours)
		return;
	s->ours = 1;
	if (!s->task && s->tid == (__u32)bpf_get_current_pid_tgid())
		s->task = (const void *)bpf_get_current_task();
	task = s->task;
	s->inside = flightrec_cgroup && flightrec_in_cgroup(s);
	if (!flightrec_pidns)
		return;
	s->pid = s->tid = 0;
	if (!task || !bpf_core_field_exists(task->thread_pid))
		return;
	s->tid = flightrec_nr(task);
	s->pid = flightrec_nr(BPF_CORE_READ(task, group_leader));
}

/* The current task. In an interrupt it is whoever was interrupted. */
static __always_inline void flightrec_current(struct flightrec_subject *s)
{
	__u64 id = bpf_get_current_pid_tgid();

	__builtin_memset(s, 0, sizeof(*s));
	s->pid = id >> 32;
	s->tid = (__u32)id;
	s->cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(s->comm, sizeof(s->comm));
}

/* Another task: TASK is a struct task_struct *, as a tracepoint gives it. By CO-RE: for programs that run
   where the kernel has BTF. */
static __always_inline void flightrec_task(struct flightrec_subject *s, const void *task)
{
	const struct task_struct___flightrec *t = task;

	__builtin_memset(s, 0, sizeof(*s));
	s->pid = BPF_CORE_READ(t, tgid);
	s->tid = BPF_CORE_READ(t, pid);
	s->cgroup_id = BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id);
	BPF_CORE_READ_STR_INTO(&s->comm, t, comm);
	s->task = task;
}

/* A filter is set, so that it matters whose a value is. */
static __always_inline int flightrec_filtered(void)
{
	return flightrec_pid || flightrec_cgroup || flightrec_comm[0];
}

/* S, localized, passes the filters and is not flightrecd itself. */
static __always_inline int flightrec_wanted(const struct flightrec_subject *s)
{
	if (flightrec_self && s->pid == flightrec_self)
		return 0;
	if (flightrec_pid && s->pid != flightrec_pid)
		return 0;
	if (flightrec_cgroup && !s->inside)
		return 0;
	if (flightrec_comm[0])
		for (int i = 0; i < FLIGHTREC_COMM_SIZE; i++) {
			if (s->comm[i] != flightrec_comm[i])
				return 0;
			if (!s->comm[i])
				break;
		}
	return 1;
}

static __always_inline struct flightrec_counters *flightrec_count(__u64 value, __u64 time_ns)
{
	__u32 zero = 0;
	struct flightrec_counters *c = bpf_map_lookup_elem(&flightrec_counters, &zero);

	if (c) {
		c->last = value;
		c->last_ns = time_ns;
	}
	return c;
}

/* For hot paths, where TIME_NS is at hand: VALUE does not reach THRESHOLD, has been noted as the newest one,
   and there is nothing more to do. False also where a filter is set: then the subject must be known first. A
   few ns; ask it before the subject is put together. */
static __always_inline int flightrec_below(__u64 value, __u64 threshold, __u64 time_ns)
{
	if (flightrec_filtered() || value >= threshold)
		return 0;
	flightrec_count(value, time_ns);
	return 1;
}

/* Within the cool-down of an earlier firing. The one that is not begins the next. */
static __always_inline int flightrec_cools(__u64 time_ns)
{
	__u64 next = flightrec_next_ns;

	if (!flightrec_cooldown_ns)
		return 0;
	if (time_ns < next)
		return 1;
	/* Two CPUs at once: one wins. */
	return __sync_val_compare_and_swap(&flightrec_next_ns, next, time_ns + flightrec_cooldown_ns) != next;
}

/* As flightrec_trigger(), of S (which is localized), at TIME_NS (CLOCK_MONOTONIC, bpf_ktime_get_ns(); now, or
   shortly before), with DETAIL (NUL-terminated, in the kernel's memory; may be 0) and an enum flightrec_unit.
   Do not call it from a loop or in several places of one program: it is inlined. */
static __always_inline int flightrec_trigger_for(struct flightrec_subject *s, const char *reason,
	const char *detail, __u32 unit, __u64 time_ns, __u64 value, __u64 threshold)
{
	struct flightrec_counters *c;
	struct flightrec_event *e;

	if (flightrec_below(value, threshold, time_ns))
		return 0;
	flightrec_localize(s);
	if (!flightrec_wanted(s))
		return 0;
	c = flightrec_count(value, time_ns);
	if (!c || value < threshold)
		return 0;
	/* Atomic, though of this CPU: an interrupt may fire in between. */
	if (flightrec_cools(time_ns)) {
		__sync_fetch_and_add(&c->cooled, 1);
		return 0;
	}
	e = bpf_ringbuf_reserve(&flightrec_events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&c->lost, 1);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->abi = FLIGHTREC_TRIGGER_ABI;
	e->size = sizeof(*e);
	e->time_ns = time_ns;
	e->value = value;
	e->threshold = threshold;
	e->cgroup_id = s->cgroup_id;
	e->pid = s->pid;
	e->tid = s->tid;
	e->cpu = bpf_get_smp_processor_id();
	e->unit = unit;
	__builtin_memcpy(e->comm, s->comm, sizeof(e->comm));
	if (reason)
		bpf_probe_read_kernel_str(e->reason, sizeof(e->reason), reason);
	if (detail)
		bpf_probe_read_kernel_str(e->detail, sizeof(e->detail), detail);
	bpf_ringbuf_submit(e, 0);
	__sync_fetch_and_add(&c->sent, 1);
	return 1;
}

/* The one call: VALUE was seen, of the current task. Where it reaches THRESHOLD (flightrec_threshold is what
   the configuration says), and neither a filter nor the cool-down is in the way, flightrecd is told REASON
   (a string literal) and decides whether to dump. Returns 1 where it was told. Below the threshold it costs
   little more than reading the clock. */
static __always_inline int flightrec_trigger(const char *reason, __u64 value, __u64 threshold)
{
	__u64 now = bpf_ktime_get_ns();
	struct flightrec_subject s;

	if (flightrec_below(value, threshold, now))
		return 0;
	flightrec_current(&s);
	return flightrec_trigger_for(&s, reason, 0, FLIGHTREC_UNIT, now, value, threshold);
}

#endif /* __bpf__ */
#endif
