/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The members of the kernel's structures that the probes read. libbpf adjusts each access to the running
 * kernel (CO-RE), so the order does not matter, other members may be missing, and the build needs no
 * vmlinux.h. Only programs named *_btf may use the structures: CO-RE needs the kernel's BTF.
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
	unsigned char sched_delayed; /* since 6.12: it sleeps, but is still in the queue */
	struct cfs_rq *cfs_rq;	     /* of the task's CPU; set for all scheduling classes */
};

/* The kernel updates these at each switch, by rq->clock. */
struct sched_info {
	unsigned long long run_delay;	 /* total time in queues */
	unsigned long long last_arrival; /* time when it began to run */
	unsigned long long last_queued;	 /* time when it came into this CPU's queue; 0: it does not wait */
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

/* Before 5.14. */
struct task_struct___state {
	long state;
};

struct irqaction {
	const char *name;
};

#pragma clang attribute pop

/* The clock of TASK's CPU in ns. In sched_switch it has the time of the switch. */
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

/* A cheap check for probes that see values all the time. True: VALUE is below the threshold, and the program
   is done. Only values near the threshold are stored as the last one, as this costs more than the check. */
static __always_inline int fr_is_below(__u64 value)
{
	struct flightrec_counters *c;
	__u32 zero = 0;

	if (__builtin_expect(value < flightrec_threshold / 8, 1))
		return 1;
	if (value >= flightrec_threshold)
		return 0;
	if (flightrec_filtered())
		return 1; /* to find out the process would cost too much here */
	c = bpf_map_lookup_elem(&flightrec_counters, &zero);
	if (c) {
		c->last = value;
		c->last_ns = bpf_ktime_get_ns();
	}
	return 1;
}

/* Fires for the current task, with a time in ns as the value. */
static __always_inline void fr_fire_current(const char *reason, const char *detail, __u64 now, __u64 value)
{
	struct flightrec_subject s;

	flightrec_current(&s);
	flightrec_trigger_for(&s, reason, detail, FLIGHTREC_UNIT_NS, now, value, flightrec_threshold);
}

/* The interrupt handler that runs on this CPU; handlers of one kind do not nest. */
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

/* The run time of the handler if it reached the threshold, else 0. */
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

/* The classic tracepoints, as their format files describe them; unchanged since before 5.4. */
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

/* Bits of a state; the low eight are also those of fr_sched_switch.prev_state. */
#define FR_TASK_INTERRUPTIBLE 0x01
#define FR_TASK_UNINTERRUPTIBLE 0x02
#define FR_TASK_NOLOAD 0x400  /* with UNINTERRUPTIBLE: idle */
#define FR_TASK_FROZEN 0x8000 /* since 6.1 */
#define FR_REPORT_DIES 0x30   /* X or Z */
#define FR_REPORT_SLEEPS 0xff /* any of these: not runnable */
