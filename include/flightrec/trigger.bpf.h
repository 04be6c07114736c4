/* SPDX-License-Identifier: MIT */
#ifndef FLIGHTREC_TRIGGER_BPF_H
#define FLIGHTREC_TRIGGER_BPF_H

/*
 * The trigger ABI of flightrec. A BPF program that includes this header and calls flightrec_trigger() can
 * make flightrecd dump. flightrec(7) has an example. A section of flightrecd.conf(5) names the object file of
 * the program:
 *
 *     [Trigger slow-disk]
 *     Program=/etc/flightrec/slow-disk.bpf.o
 *     Threshold=20ms
 *
 * Include "vmlinux.h" or <linux/bpf.h> before this header. You can also define FLIGHTREC_UNIT before this
 * header. FLIGHTREC_UNIT is the unit of the values and of Threshold=, for example FLIGHTREC_UNIT_NS. Compile
 * with clang -target bpf -mcpu=v3 -g -O2.
 *
 * flightrecd sets the globals below and the globals that Set=NAME=VALUE names, loads the object, attaches
 * each program by its SEC() name, and reads the ring buffer flightrec_events. The object needs the license
 * that its helpers require ("GPL" for tracing). The names of some programs and sections have a meaning:
 *
 *   - The programs NAME_btf and NAME_classic are alternatives. flightrecd loads NAME_btf if the kernel has
 *     BTF and the tracepoint of that program, otherwise NAME_classic.
 *   - A program of SEC("?...") is left out if the kernel does not have its tracepoint.
 *   - If another program has a tracepoint that the kernel does not have, or if the kernel has the tracepoint
 *     of neither alternative, flightrecd refuses the object and names the tracepoint.
 *
 * A program can also switch events that flightrecd records: flightrec_event_enable(), at the end of this
 * header.
 *
 * flightrecd makes each program of SEC("tracepoint/...") return 1, whatever the program itself returns. If
 * the program returned 0, the kernel would hide the event from all perf users of that tracepoint, and
 * flightrecd is one of them.
 *
 * The header needs Linux 5.12. BTF in the kernel is optional. Without BTF, CGroup= matches only tasks
 * directly in the named cgroup, and no tasks in cgroups below it. Without BTF, a flightrecd that does not run
 * in the initial pid namespace cannot know pids.
 *
 * flightrecd itself includes this header for the structures.
 */

#define FLIGHTREC_TRIGGER_ABI 1

#define FLIGHTREC_COMM_SIZE 16
#define FLIGHTREC_REASON_SIZE 64
#define FLIGHTREC_DETAIL_SIZE 64

/* The unit of a value and of a threshold. */
enum flightrec_unit {
	FLIGHTREC_UNIT_NONE = 0,
	FLIGHTREC_UNIT_NS = 1,
	FLIGHTREC_UNIT_COUNT = 2,
	FLIGHTREC_UNIT_BYTES = 3,
	FLIGHTREC_UNIT_PERCENT = 4,
};

/* An anomaly, as it is in the ring buffer. Numbers have the byte order of the host. Strings are
   NUL-terminated. Later versions of the structure have more members at the end and another size. */
struct flightrec_event {
	__u32 abi;     /* FLIGHTREC_TRIGGER_ABI */
	__u32 size;    /* bytes of this structure */
	__u64 time_ns; /* CLOCK_MONOTONIC: when the anomaly happened */
	__u64 value, threshold;
	__u64 cgroup_id; /* 0: unknown */
	__u32 pid, tid;	 /* in the pid namespace of flightrecd; 0: not visible there */
	__u32 cpu;
	__u32 unit; /* enum flightrec_unit */
	char comm[FLIGHTREC_COMM_SIZE];
	char reason[FLIGHTREC_REASON_SIZE]; /* what happened: "run-queue latency" */
	char detail[FLIGHTREC_DETAIL_SIZE]; /* a device, a system call …; can be empty */
};

/* Counters of one CPU, in the map flightrec_counters. Each value that reaches the threshold and passes the
   filters is an anomaly. Each anomaly is counted once: in `sent`, `cooled` or `lost`. */
struct flightrec_counters {
	__u64 sent;    /* put into the ring buffer */
	__u64 cooled;  /* within the cool-down of an earlier anomaly */
	__u64 lost;    /* the ring buffer was full */
	__u64 last;    /* the newest value that passed the filters, even if below the threshold */
	__u64 last_ns; /* the time of `last`, CLOCK_MONOTONIC; 0: no value yet */
};

/* The state of an event that flightrecd records, in the map flightrec_switches. */
struct flightrec_switch {
	__u32 is_off;
	__u32 changes;	/* how often BPF programs have switched the event */
	__u64 since_ns; /* CLOCK_MONOTONIC: when it was last switched on; 0: never */
};

/* The events that an object switches. flightrec_event_enable() adds the name, and flightrecd sets the slot
   when it loads the object. */
#define FLIGHTREC_EVENT_NAME_SIZE 64
struct flightrec_event_ref {
	char name[FLIGHTREC_EVENT_NAME_SIZE];
	__u32 slot; /* the index in flightrec_switches */
	__u32 reserved;
};

/* A program has switched an event, as it is in the ring buffer. */
#define FLIGHTREC_SWITCH_ABI 0x5701
struct flightrec_switch_record {
	__u32 abi;     /* FLIGHTREC_SWITCH_ABI */
	__u32 size;    /* bytes of this structure */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 for_ns;  /* after this time, the event comes back to its configuration; 0: SwitchLimit= */
	__u32 slot;
	__u32 is_off;
	__u32 pid, tid; /* of the current task, in the pid namespace of flightrecd; 0: not visible there */
	__u32 cpu;
	__u32 reserved;
	char comm[FLIGHTREC_COMM_SIZE];
};

#ifdef __bpf__

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#ifndef FLIGHTREC_UNIT
#define FLIGHTREC_UNIT FLIGHTREC_UNIT_NONE
#endif

/* flightrecd sets these globals before it loads the object. For the verifier they are constants, so a filter
   that is not set costs nothing. */
#define FLIGHTREC_GLOBAL SEC(".rodata.flightrec")
const volatile __u32 flightrec_abi FLIGHTREC_GLOBAL = FLIGHTREC_TRIGGER_ABI;
const volatile __u32 flightrec_unit FLIGHTREC_GLOBAL = FLIGHTREC_UNIT;	       /* read by flightrecd */
const volatile __u64 flightrec_threshold FLIGHTREC_GLOBAL = 0;		       /* Threshold= */
const volatile __u64 flightrec_cooldown_ns FLIGHTREC_GLOBAL = 0;	       /* Cooldown= */
const volatile __u32 flightrec_pid FLIGHTREC_GLOBAL = 0;		       /* Pid=; 0: any */
const volatile __u64 flightrec_cgroup FLIGHTREC_GLOBAL = 0;		       /* CGroup=, an id; 0: any */
const volatile char flightrec_comm[FLIGHTREC_COMM_SIZE] FLIGHTREC_GLOBAL = ""; /* Comm=; "": any */
const volatile __u32 flightrec_self FLIGHTREC_GLOBAL = 0;  /* pid of flightrecd; its values are ignored */
const volatile __u32 flightrec_pidns FLIGHTREC_GLOBAL = 0; /* inode of flightrecd's namespace; 0: initial */

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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* flightrecd gives the map of the events that it records */
	__type(key, __u32);
	__type(value, struct flightrec_switch);
} flightrec_switches SEC(".maps");

static __u64 flightrec_next_ns; /* the end of the cool-down, CLOCK_MONOTONIC */

/* The members of kernel structures that this header reads. The names have a suffix "___flightrec", so that
   they do not collide with the names of vmlinux.h. CO-RE ignores the suffix. */
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
	struct cgroup_subsys_state___flightrec self; /* the first member: its address is the cgroup's */
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

/* The task that an anomaly is about. flightrec_current() or flightrec_task() fills it. If a program fills
   this struct itself, the program sets all members that it does not know to 0. */
struct flightrec_subject {
	__u32 pid, tid; /* in the initial pid namespace; if `ours` is set: in flightrecd's */
	__u64 cgroup_id;
	char comm[FLIGHTREC_COMM_SIZE];
	const void *task; /* the struct task_struct, while it exists; 0: not known, or the current task */
	__u32 ours;	  /* flightrec_localize() has run */
	__u32 inside;	  /* if `ours` is set: the task is in flightrec_cgroup or below it */
};

/* Returns the pid of TASK in the pid namespace of flightrecd, or 0 if TASK is not visible there. The kernel
   has at most 32 levels of pid namespaces (MAX_PID_NS_LEVEL). */
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

/* Returns whether S is in flightrec_cgroup or below it. If the struct task_struct of S is not known, or the
   kernel has no BTF, returns 0 for a task in a cgroup below flightrec_cgroup. */
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

/* Translates the pid and the tid of S into the pid namespace of flightrecd, and finds out whether S is in the
   cgroup of CGroup=. Later calls for the same S do nothing. flightrec_trigger_for() calls this function. If
   you need S after its task has exited, call flightrec_localize() earlier, while the task exists: after that
   call, no function reads the struct task_struct any more. */
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

/* Fills S with the current task. In an interrupt, the current task is the interrupted task. */
static __always_inline void flightrec_current(struct flightrec_subject *s)
{
	__u64 id = bpf_get_current_pid_tgid();

	__builtin_memset(s, 0, sizeof(*s));
	s->pid = id >> 32;
	s->tid = (__u32)id;
	s->cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(s->comm, sizeof(s->comm));
}

/* Fills S with TASK, the struct task_struct * that a tracepoint passes. Uses CO-RE, so the kernel must have
   BTF. */
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

/* Returns whether a filter is set (Pid=, CGroup= or Comm=). A filter can be applied only if the task of the
   value is known. */
static __always_inline int flightrec_filtered(void)
{
	return flightrec_pid || flightrec_cgroup || flightrec_comm[0];
}

/* Returns whether S passes the filters and is not flightrecd itself. Call flightrec_localize() for S before
   this function. */
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

/* Stores VALUE as the newest value. Returns the counters of this CPU. The returned pointer is never 0, but
   the verifier requires that the caller checks the pointer. */
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

/* For paths that run often: call this function before you fill a subject. TIME_NS is the time of VALUE. If
   VALUE is below THRESHOLD and no filter is set, stores VALUE as the newest value and returns 1. After a 1,
   the caller has nothing more to do. Otherwise returns 0: VALUE reaches THRESHOLD, or a filter has to see the
   subject first. The call costs a few ns. */
static __always_inline int flightrec_below(__u64 value, __u64 threshold, __u64 time_ns)
{
	if (flightrec_filtered() || value >= threshold)
		return 0;
	flightrec_count(value, time_ns);
	return 1;
}

/* Returns whether TIME_NS is within a cool-down. If TIME_NS is not within a cool-down, a new cool-down begins
   at TIME_NS. */
static __always_inline int flightrec_cools(__u64 time_ns)
{
	__u64 next = flightrec_next_ns;

	if (!flightrec_cooldown_ns)
		return 0;
	if (time_ns < next)
		return 1;
	/* If two CPUs come here at the same time, one CPU begins the cool-down, and the anomaly of the other
	   CPU is within the cool-down. */
	return __sync_val_compare_and_swap(&flightrec_next_ns, next, time_ns + flightrec_cooldown_ns) != next;
}

/* Does the same as flightrec_trigger(), but for the task S. TIME_NS is the time of the anomaly
   (bpf_ktime_get_ns()): the current time, or a time shortly before. DETAIL is a string in kernel memory, or
   0. UNIT is an enum flightrec_unit. The function is inlined, so call it from one place only, and not in a
   loop. */
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
	/* The counters are atomic, because an interrupt of this CPU can run this code, too. */
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

/* Reports VALUE of the current task. flightrecd gets an anomaly with REASON, a string literal, if VALUE
   reaches THRESHOLD (flightrec_threshold is the configured threshold), the task passes the filters, and the
   last cool-down is over. When flightrecd gets the anomaly, it decides whether to dump. Returns 1 if
   flightrecd gets the anomaly. Otherwise returns 0, for example if the ring buffer is full. If VALUE is below
   THRESHOLD, the call costs little more than reading the clock. */
static __always_inline int flightrec_trigger(const char *reason, __u64 value, __u64 threshold)
{
	__u64 now = bpf_ktime_get_ns();
	struct flightrec_subject s;

	if (flightrec_below(value, threshold, now))
		return 0;
	flightrec_current(&s);
	return flightrec_trigger_for(&s, reason, 0, FLIGHTREC_UNIT, now, value, threshold);
}

/* Changes the state of an event; it has effect when this function returns. If the event is in the wanted
   state, this is one load and one branch. Returns the time, or 0 if the event was in this state. */
static __always_inline __u64 flightrec_switch_state(__u32 slot, __u32 is_off)
{
	struct flightrec_switch *s = bpf_map_lookup_elem(&flightrec_switches, &slot);
	__u64 now;

	if (!s || s->is_off == is_off)
		return 0;
	now = bpf_ktime_get_ns();
	if (!is_off)
		s->since_ns = now;
	/* If another CPU switches at the same time, one of the two reports it. */
	if (__sync_val_compare_and_swap(&s->is_off, !is_off, is_off) == is_off)
		return 0;
	__sync_fetch_and_add(&s->changes, 1);
	return now;
}

/* Tells flightrecd about the switch at the time NOW. */
static __always_inline void flightrec_report_switch(__u32 slot, __u32 is_off, __u64 for_ns, __u64 now)
{
	struct flightrec_switch_record *r = bpf_ringbuf_reserve(&flightrec_events, sizeof(*r), 0);
	struct flightrec_subject s;

	if (!r)
		return; /* flightrecd sees by `changes` that a record is missing */
	__builtin_memset(r, 0, sizeof(*r));
	r->abi = FLIGHTREC_SWITCH_ABI;
	r->size = sizeof(*r);
	r->time_ns = now;
	r->for_ns = for_ns;
	r->slot = slot;
	r->is_off = is_off;
	flightrec_current(&s);
	flightrec_localize(&s);
	r->pid = s.pid;
	r->tid = s.tid;
	r->cpu = bpf_get_smp_processor_id();
	__builtin_memcpy(r->comm, s.comm, sizeof(r->comm));
	bpf_ringbuf_submit(r, 0);
}

/* Does the work of flightrec_event_enable_for(). */
static __always_inline int flightrec_switch(__u32 slot, __u32 is_off, __u64 for_ns)
{
	const __u64 now = flightrec_switch_state(slot, is_off);

	if (!now)
		return 0;
	flightrec_report_switch(slot, is_off, for_ns, now);
	return 1;
}

/* The index of the event NAME in flightrec_switches. */
#define flightrec_event_slot(name)                                                                           \
	({                                                                                                   \
		static const volatile struct flightrec_event_ref flightrec_ref SEC(                          \
			".rodata.flightrec.events") = {name, 0, 0};                                          \
		flightrec_ref.slot;                                                                          \
	})

/*
 * Switches the recording of the event NAME on or off, at once: the next occurrence on this CPU is recorded,
 * or not recorded. NAME is a string literal: the name of an event that flightrecd records, as `flightrecctl
 * event` shows it. A BPF program of flightrecd must make the samples of this event; otherwise flightrecd does
 * not arm the trigger, and says what to do. FOR_NS is the time after which the event comes back to its
 * configuration; 0: SwitchLimit= of flightrecd.conf(5). Returns 1 if this call has switched the event; 0 if
 * the event was in this state already. Each switch is a sample flightrec:trigger in the dumps.
 */
#define flightrec_event_enable_for(name, on, for_ns)                                                         \
	flightrec_switch(flightrec_event_slot(name), !(on), for_ns)
#define flightrec_event_enable(name, on) flightrec_event_enable_for(name, on, 0)
#define flightrec_event_disable(name) flightrec_event_enable_for(name, 0, 0)

#endif /* __bpf__ */
#endif
