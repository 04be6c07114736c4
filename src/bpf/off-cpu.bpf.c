// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Off-CPU time: how long a task was blocked, from where it stopped running to where it was woken. Fires as it
 * runs again, so a task that never does is hung-task's. Blocked is who waits uninterruptibly (or killably:
 * the same to a person who presses ^C): a task that waits interruptibly most often waits for work, which is
 * no anomaly; `interruptible` lets those count, too.
 */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 interruptible = 0;

#define REASON "blocked off CPU"
#define TASKS 16384 /* power of two */

struct blocked {
	__u64 since_ns;
	__u64 cgroup_id; /* of the classic program, as the next one, since it is not told later */
	__u32 tgid;
};

/* Allocated beforehand: nothing may be allocated while a run queue is locked. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TASKS);
	__type(key, __u32);
	__type(value, struct blocked);
} blocked SEC(".maps");

/* How many of the tasks of a slot are in the map. Few tasks block, all are switched to: this spares them the
 * look. */
static __u32 slots[TASKS];

static __always_inline __u32 *slot(__u32 tid)
{
	return &slots[tid & (TASKS - 1)];
}

static __always_inline int blocks(__u32 state)
{
	if (state & (FR_TASK_NOLOAD | FR_TASK_FROZEN))
		return 0;
	return state & (FR_TASK_UNINTERRUPTIBLE | (interruptible ? FR_TASK_INTERRUPTIBLE : 0));
}

static __always_inline void remember(__u32 tid, const struct blocked *b)
{
	if (bpf_map_update_elem(&blocked, &tid, b, BPF_NOEXIST) == 0)
		__sync_fetch_and_add(slot(tid), 1);
	else
		bpf_map_update_elem(&blocked, &tid, b, BPF_EXIST);
}

/* 1 where TID was blocked, with what was remembered; it is forgotten. */
static __always_inline int recall(__u32 tid, struct blocked *ret)
{
	struct blocked *b;

	if (__builtin_expect(!*slot(tid), 1))
		return 0;
	b = bpf_map_lookup_elem(&blocked, &tid);
	if (!b)
		return 0;
	*ret = *b;
	if (bpf_map_delete_elem(&blocked, &tid) == 0)
		__sync_fetch_and_add(slot(tid), -1);
	return 1;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch_btf, _Bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct flightrec_subject s;
	__u64 now, time, queued;
	struct blocked b = {};

	if (!preempt && blocks(fr_task_state(prev))) {
		b.since_ns = bpf_ktime_get_ns();
		remember(prev->pid, &b);
	}
	if (!recall(next->pid, &b))
		return 0;
	now = bpf_ktime_get_ns();
	time = now - b.since_ns;
	/* What it has waited for the CPU since it was woken is not time that it was blocked. */
	queued = fr_rq_clock(next) - next->sched_info.last_queued;
	if (next->sched_info.last_queued && queued < time)
		time -= queued;
	if (fr_below(time))
		return 0;
	flightrec_task(&s, next);
	flightrec_trigger_for(&s, REASON, 0, FLIGHTREC_UNIT_NS, now, time, flightrec_threshold);
	return 0;
}

/* Without BTF: what it has waited for the CPU counts, too. */
SEC("tracepoint/sched/sched_switch")
int sched_switch_classic(struct fr_sched_switch *ctx)
{
	struct flightrec_subject s = {.tid = ctx->next_pid};
	struct blocked b = {};
	__u64 now, time;

	if (blocks(ctx->prev_state & FR_REPORT_SLEEPS)) {
		b.since_ns = bpf_ktime_get_ns();
		b.cgroup_id = bpf_get_current_cgroup_id();
		b.tgid = bpf_get_current_pid_tgid() >> 32;
		remember(ctx->prev_pid, &b);
	}
	if (!recall(s.tid, &b))
		return 1;
	now = bpf_ktime_get_ns();
	time = now - b.since_ns;
	if (fr_below(time))
		return 1;
	s.pid = b.tgid;
	s.cgroup_id = b.cgroup_id;
	__builtin_memcpy(s.comm, ctx->next_comm, sizeof(s.comm));
	flightrec_trigger_for(&s, REASON, 0, FLIGHTREC_UNIT_NS, now, time, flightrec_threshold);
	return 1;
}
