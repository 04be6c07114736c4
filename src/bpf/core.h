/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The kernel's structures as far as the probes read them. libbpf moves every access to where the running
 * kernel has the member (CO-RE), so they need neither all members nor their order, and the build needs no
 * vmlinux.h. Only programs named *_btf may touch them: without BTF there is nothing to move by.
 *
 * Included after <linux/bpf.h>, <flightrec/trigger.bpf.h> and <bpf/bpf_tracing.h>.
 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq {
	__u64 clock; /* ns, of this CPU's sched_clock() */
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	unsigned char sched_delayed; /* since 6.12: asleep, and still in the queue */
	struct cfs_rq *cfs_rq;	     /* of the task's CPU, whatever class the task is of */
};

/* Kept by the kernel at each switch, in rq->clock. */
struct sched_info {
	unsigned long long run_delay;	 /* waited in queues, ever */
	unsigned long long last_arrival; /* began to run */
	unsigned long long last_queued;	 /* began to wait in this CPU's queue; 0: does not wait */
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

/* The clock of TASK's CPU, ns. Fresh in sched_switch, where its time is that of the switch. */
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

/* For what sees values all the time: 1 where VALUE is below the threshold, and nothing else is to be done.
   Values that come near it are remembered as the last ones seen; to do so for all would cost more than the
   rest. */
static __always_inline int fr_below(__u64 value)
{
	struct flightrec_counters *c;
	__u32 zero = 0;

	if (__builtin_expect(value < flightrec_threshold / 8, 1))
		return 1;
	if (value >= flightrec_threshold)
		return 0;
	if (flightrec_filtered())
		return 1; /* whose it is costs too much here */
	c = bpf_map_lookup_elem(&flightrec_counters, &zero);
	if (c) {
		c->last = value;
		c->last_ns = bpf_ktime_get_ns();
	}
	return 1;
}

/* What the classic tracepoints hand out, by their format files: the same since before 5.4. */
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
