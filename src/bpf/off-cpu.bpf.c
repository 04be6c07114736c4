// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures how long a task was blocked: from the time when it stopped running to the time when it was woken.
 * Fires when the task runs again. (The probe hung-task detects tasks that never run again.) A task is blocked
 * if it waits uninterruptibly or killably. A task that waits interruptibly usually waits for work, and is
 * measured only if `interruptible` is set.
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
	__u64 cgroup_id; /* cgroup_id and tgid are only for the classic program, which cannot read them when
			    the task runs again */
	__u32 tgid;
};

/* The map is preallocated, because programs must not allocate memory while a run queue is locked. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TASKS);
	__type(key, __u32);
	__type(value, struct blocked);
} blocked SEC(".maps");

/* The number of blocked tasks in each slot (tid modulo TASKS). The number is 0 in most slots, so most
   switches need no lookup in the map. */
static __u32 slots[TASKS];

static __always_inline __u32 *slot(__u32 tid)
{
	return &slots[tid & (TASKS - 1)];
}

static __always_inline int is_blocking(__u32 state)
{
	if (state & (FR_TASK_NOLOAD | FR_TASK_FROZEN))
		return 0;
	return state & (FR_TASK_UNINTERRUPTIBLE | (interruptible ? FR_TASK_INTERRUPTIBLE : 0));
}

static __always_inline void add_blocked(__u32 tid, const struct blocked *b)
{
	if (bpf_map_update_elem(&blocked, &tid, b, BPF_NOEXIST) == 0)
		__sync_fetch_and_add(slot(tid), 1);
	else
		bpf_map_update_elem(&blocked, &tid, b, BPF_EXIST);
}

/* Moves the entry of TID to RET. Returns whether TID was blocked. */
static __always_inline int take_blocked(__u32 tid, struct blocked *ret)
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

	if (!preempt && is_blocking(fr_task_state(prev))) {
		b.since_ns = bpf_ktime_get_ns();
		add_blocked(prev->pid, &b);
	}
	if (!take_blocked(next->pid, &b))
		return 0;
	now = bpf_ktime_get_ns();
	time = now - b.since_ns;
	/* Subtract the time that NEXT waited for the CPU after it was woken. */
	queued = fr_rq_clock(next) - next->sched_info.last_queued;
	if (next->sched_info.last_queued && queued < time)
		time -= queued;
	if (fr_is_below(time))
		return 0;
	flightrec_task(&s, next);
	flightrec_trigger_for(&s, REASON, 0, FLIGHTREC_UNIT_NS, now, time, flightrec_threshold);
	return 0;
}

/* Without BTF, the value includes the time that the task waited for the CPU. */
SEC("tracepoint/sched/sched_switch")
int sched_switch_classic(struct fr_sched_switch *ctx)
{
	struct flightrec_subject s = {.tid = ctx->next_pid};
	struct blocked b = {};
	__u64 now, time;

	if (is_blocking(ctx->prev_state & FR_REPORT_SLEEPS)) {
		b.since_ns = bpf_ktime_get_ns();
		b.cgroup_id = bpf_get_current_cgroup_id();
		b.tgid = bpf_get_current_pid_tgid() >> 32;
		add_blocked(ctx->prev_pid, &b);
	}
	if (!take_blocked(s.tid, &b))
		return 1;
	now = bpf_ktime_get_ns();
	time = now - b.since_ns;
	if (fr_is_below(time))
		return 1;
	s.pid = b.tgid;
	s.cgroup_id = b.cgroup_id;
	__builtin_memcpy(s.comm, ctx->next_comm, sizeof(s.comm));
	flightrec_trigger_for(&s, REASON, 0, FLIGHTREC_UNIT_NS, now, time, flightrec_threshold);
	return 1;
}
