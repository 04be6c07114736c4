// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures how long a task waited for a CPU after it became ready to run, because it was woken or preempted.
 * Fires when the task begins to run.
 *
 * The kernel keeps sched_info.last_queued, the time when the task came into this CPU's queue. The kernel
 * resets this time after the tracepoint sched_switch, so the program for sched_switch can read it. In two
 * cases, the time is not the start of the wait: the kernel moved the task to another CPU's queue while the
 * task waited, or while the task slept (docs/design/73). The probe handles both cases.
 */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

#define REASON "run-queue latency"
#define SLOTS 8192  /* power of two */
#define TID_BITS 22 /* the largest pid_max of Linux */
#define DELAY_MASK ((1ULL << (64 - TID_BITS)) - 1)
#define MOVE_NS 10000000ULL /* longest time of a move between two queues */
#define MIGRATING 2	    /* task_struct.on_rq: between two queues */

/* For each task: the tid, and the low 42 bits of run_delay at the time when the task stopped running. The tid
   and these bits are in one word, so that the writes of two CPUs do not mix. If tasks share a slot, the slot
   has the data of the task that stopped last. */
static __u64 stopped[SLOTS];
static __u64 moved_asleep[SLOTS]; /* the time, by rq->clock, of a move to another queue during
				     the task's sleep */

static __always_inline __u64 tid_bits(__u32 tid)
{
	return (__u64)tid << (64 - TID_BITS);
}

static __always_inline void remember_stop(__u32 tid, __u64 run_delay)
{
	stopped[tid & (SLOTS - 1)] = tid_bits(tid) | (run_delay & DELAY_MASK);
}

/* Returns the time that NEXT has waited in the queues of other CPUs since it last ran. */
static __always_inline __u64 get_wait_elsewhere(struct task_struct *next)
{
	__u32 tid = next->pid;
	__u64 word = stopped[tid & (SLOTS - 1)];

	if ((word & ~DELAY_MASK) != tid_bits(tid))
		return 0;
	return (next->sched_info.run_delay - word) & DELAY_MASK;
}

static __always_inline void fire(struct task_struct *next, __u64 wait)
{
	__u64 queued = next->sched_info.last_queued;
	__u64 moved = moved_asleep[(__u32)next->pid & (SLOTS - 1)];
	struct flightrec_subject s;

	/* It is possible that `queued` is the time of a move during the task's sleep, and not the start of a
	   wait. So ignore a wait that begins less than MOVE_NS before or after this move. */
	if (moved && queued - moved + MOVE_NS < 2 * MOVE_NS)
		return;
	flightrec_task(&s, next);
	flightrec_trigger_for(
		&s, REASON, 0, FLIGHTREC_UNIT_NS, bpf_ktime_get_ns(), wait, flightrec_threshold);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch_btf, _Bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 queued = next->sched_info.last_queued, wait;
	__u32 tid = prev->pid;

	if (tid)
		remember_stop(tid, prev->sched_info.run_delay);
	if (!queued)
		return 0; /* NEXT is the idle task */
	wait = fr_rq_clock(next) - queued + get_wait_elsewhere(next);
	if (fr_is_below(wait))
		return 0;
	fire(next, wait);
	return 0;
}

/* enqueue_btf and enqueue_classic handle a task that comes into a queue: enqueue_btf after a move from
   another queue, enqueue_classic after a wake-up. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(enqueue_btf, struct task_struct *task)
{
	if (!bpf_core_field_exists(task->se.sched_delayed) || task->on_rq != MIGRATING)
		return 0;
	if (task->se.sched_delayed)
		moved_asleep[(__u32)task->pid & (SLOTS - 1)] = fr_rq_clock(task);
	return 0;
}

/* Resets the stored run_delay, because it belongs to an earlier task with the same number. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(first_wakeup_btf, struct task_struct *task)
{
	remember_stop(task->pid, 0);
	return 0;
}

/* Without BTF, the programs store the time when a task is woken or preempted. */
struct waiting {
	__u64 since_ns; /* 0: the task does not wait */
	__u64 cgroup_id;
	__u32 tgid; /* 0: unknown, because the task has not run yet */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u32);
	__type(value, struct waiting);
} waiting SEC(".maps");

static __always_inline void begin_wait(__u32 tid, __u64 now)
{
	struct waiting *w = bpf_map_lookup_elem(&waiting, &tid), first = {.since_ns = now};

	if (!w)
		bpf_map_update_elem(&waiting, &tid, &first, BPF_ANY);
	else if (!w->since_ns)
		w->since_ns = now;
}

SEC("tracepoint/sched/sched_wakeup")
int enqueue_classic(struct fr_sched_task *ctx)
{
	begin_wait(ctx->pid, bpf_ktime_get_ns());
	return 1;
}

SEC("tracepoint/sched/sched_wakeup_new")
int first_wakeup_classic(struct fr_sched_task *ctx)
{
	__u32 tid = ctx->pid;

	/* The entry belongs to an earlier task with the same number. */
	bpf_map_delete_elem(&waiting, &tid);
	begin_wait(tid, bpf_ktime_get_ns());
	return 1;
}

/* Handles the task that stops running. The program can read the process and the cgroup of this task only now,
   while it is the current task. */
static __always_inline void handle_prev(struct fr_sched_switch *ctx, __u64 now)
{
	__u32 tid = ctx->prev_pid;
	struct waiting *w;

	if (!tid)
		return;
	if (ctx->prev_state & FR_REPORT_DIES) {
		bpf_map_delete_elem(&waiting, &tid);
		return;
	}
	if (!(ctx->prev_state & FR_REPORT_SLEEPS))
		begin_wait(tid, now);
	w = bpf_map_lookup_elem(&waiting, &tid);
	/* If a wake-up is stored for a task that sleeps now, the wake-up came before the sleep. So it does
	   not begin a wait. */
	if (w && ctx->prev_state & FR_REPORT_SLEEPS)
		w->since_ns = 0;
	if (w && !w->tgid) {
		w->tgid = bpf_get_current_pid_tgid() >> 32;
		w->cgroup_id = bpf_get_current_cgroup_id();
	}
}

SEC("tracepoint/sched/sched_switch")
int sched_switch_classic(struct fr_sched_switch *ctx)
{
	struct flightrec_subject s = {.tid = ctx->next_pid};
	__u64 now = bpf_ktime_get_ns(), wait;
	struct waiting *w;

	handle_prev(ctx, now);
	w = bpf_map_lookup_elem(&waiting, &s.tid);
	if (!s.tid || !w || !w->since_ns)
		return 1;
	wait = now - w->since_ns;
	w->since_ns = 0;
	if (fr_is_below(wait))
		return 1;
	s.pid = w->tgid;
	s.cgroup_id = w->cgroup_id;
	__builtin_memcpy(s.comm, ctx->next_comm, sizeof(s.comm));
	flightrec_trigger_for(&s, REASON, 0, FLIGHTREC_UNIT_NS, now, wait, flightrec_threshold);
	return 1;
}
