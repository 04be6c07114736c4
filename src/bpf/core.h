/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The members of the kernel's structures that the probes read. libbpf adjusts each access to the running
 * kernel (CO-RE). So these structures can have another order of members than the kernel's structures, and can
 * leave members out. The build needs no vmlinux.h. CO-RE needs the kernel's BTF, so only programs with a name
 * *_btf are allowed to use the structures.
 *
 * Include <linux/bpf.h>, <flightrec/trigger.bpf.h> and <bpf/bpf_tracing.h> first.
 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq {
	__u64 clock; /* ns, of this CPU's sched_clock() */
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	unsigned char sched_delayed; /* since 6.12: the task sleeps, but is still in the queue */
	struct cfs_rq *cfs_rq;	     /* the queue of the task's CPU; set for all scheduling classes */
};

/* The kernel updates these members at each switch, with times of rq->clock. */
struct sched_info {
	unsigned long long run_delay;	 /* total time that the task waited in queues */
	unsigned long long last_arrival; /* time when the task began to run */
	unsigned long long
		last_queued; /* time when the task came into this CPU's queue; 0: it does not wait */
};

struct task_struct {
	unsigned int __state;
	int on_rq;
	struct sched_entity se;
	struct sched_info sched_info;
	int pid, tgid;
	char comm[FLIGHTREC_COMM_SIZE];
	struct mm_struct *mm;
	__u64 start_time; /* monotonic, ns */
	unsigned long min_flt, maj_flt;
};

/* The kernel's task_struct before 5.14. */
struct task_struct___state {
	long state;
};

struct irqaction {
	const char *name;
};

#pragma clang attribute pop

/* Returns the clock of TASK's CPU in ns. During sched_switch, this is the time of the switch. */
static __always_inline __u64 fr_rq_clock(struct task_struct *task)
{
	return task->se.cfs_rq->rq->clock;
}

static __always_inline __u32 fr_task_state(struct task_struct *task)
{
	struct task_struct___state *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return old->state;
}

/* Returns whether VALUE is below the threshold. If so, the program has nothing more to do. This function
   is for probes that see values all the time, so it must be cheap. It costs more to store VALUE as the
   last value than to compare VALUE with the threshold. So the function stores only values of at least 1/8
   of the threshold. */
static __always_inline int fr_is_below(__u64 value)
{
	struct flightrec_counters *c;
	__u32 zero = 0;

	if (__builtin_expect(value < flightrec_threshold / 8, 1))
		return 1;
	if (value >= flightrec_threshold)
		return 0;
	if (flightrec_filtered())
		return 1; /* store nothing, because it costs too much to find out whether the value
			     passes the filters */
	c = bpf_map_lookup_elem(&flightrec_counters, &zero);
	if (c) {
		c->last = value;
		c->last_ns = bpf_ktime_get_ns();
	}
	return 1;
}

/* Fires, with the current task as the cause's task. VALUE is a time in ns. */
static __always_inline void fr_fire_current(const char *reason, const char *detail, __u64 now, __u64 value)
{
	struct flightrec_subject s;

	flightrec_current(&s);
	flightrec_trigger_for(&s, reason, detail, FLIGHTREC_UNIT_NS, now, value, flightrec_threshold);
}

/* A map that has, for each CPU, the time when the interrupt handler on the CPU began; 0: unknown. Handlers of
   one kind do not nest, so one time for each CPU is enough. */
#define FR_HANDLER_MAP                                                                                       \
	struct {                                                                                             \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                                     \
		__uint(max_entries, 1);                                                                      \
		__type(key, __u32);                                                                          \
		__type(value, __u64);                                                                        \
	} begin_ns SEC(".maps")

static __always_inline int fr_begin_handler(void *map)
{
	__u32 zero = 0;
	__u64 *begin = bpf_map_lookup_elem(map, &zero);

	if (begin)
		*begin = bpf_ktime_get_ns();
	return 0;
}

/* Returns the run time of the handler; or 0 if the run time is below the threshold, or if the start of the
   handler is unknown. */
static __always_inline __u64 fr_end_handler(void *map, __u64 now)
{
	__u32 zero = 0;
	__u64 *begin = bpf_map_lookup_elem(map, &zero), time;

	if (!begin || !*begin)
		return 0;
	time = now - *begin;
	*begin = 0;
	return fr_is_below(time) ? 0 : time;
}

/* The classic tracepoints. Their formats have been the same since before 5.4. */
struct fr_sched_switch {
	__u64 common;
	char prev_comm[FLIGHTREC_COMM_SIZE];
	__u32 prev_pid;
	int prev_prio;
	long prev_state; /* FR_REPORT_… */
	char next_comm[FLIGHTREC_COMM_SIZE];
	__u32 next_pid;
	int next_prio;
};

struct fr_sched_task { /* sched_wakeup, sched_wakeup_new */
	__u64 common;
	char comm[FLIGHTREC_COMM_SIZE];
	__u32 pid;
};

/* Bits of fr_task_state(). The low eight bits mean the same in fr_sched_switch.prev_state. */
#define FR_TASK_INTERRUPTIBLE 0x01
#define FR_TASK_UNINTERRUPTIBLE 0x02
#define FR_TASK_NOLOAD 0x400  /* together with UNINTERRUPTIBLE: the task is idle */
#define FR_TASK_FROZEN 0x8000 /* since 6.1 */
#define FR_REPORT_DIES 0x30   /* any of these bits: the task is dead (X) or a zombie (Z) */
#define FR_REPORT_SLEEPS 0xff /* any of these bits: the task is not runnable */
