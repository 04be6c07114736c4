// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes the samples of tracepoints in place of perf (docs/design/14). The programs of raw tracepoints make
 * the raw data themselves. All other tracepoints share one program, which gets the raw data from the kernel.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stddef.h>
#include "record.bpf.h"
#include "tracepoint.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The values of the kernel's task states (include/linux/sched.h). */
#define TASK_REPORT 0x7f
#define TASK_IDLE 0x402
#define TASK_REPORT_IDLE 0x80
#define TASK_REPORT_MAX 0x100
#define TASK_UNINTERRUPTIBLE 2
#define TASK_RTLOCK_WAIT 0x1000
#define TASK_FROZEN 0x8000

static __always_inline void copy_comm(void *to, const struct task_struct___tp *task)
{
	bpf_probe_read_kernel(to, 16, task->comm);
}

static __always_inline void copy_args(__u64 *to, const struct pt_regs___kernel *regs)
{
	to[0] = regs->di;
	to[1] = regs->si;
	to[2] = regs->dx;
	to[3] = regs->r10;
	to[4] = regs->r8;
	to[5] = regs->r9;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs___kernel *regs, long id)
{
	struct fr_made m;
	__u64 *raw;

	if (!fr_tracepoint_begin(&m, FR_BPF_SYS_ENTER, fr_event_of[FR_BPF_SYS_ENTER]))
		return 0;
	raw = m.raw;
	raw[1] = id;
	if (fr_is_compat()) {
		raw[2] = (__u32)regs->bx;
		raw[3] = (__u32)regs->cx;
		raw[4] = (__u32)regs->dx;
		raw[5] = (__u32)regs->si;
		raw[6] = (__u32)regs->di;
		raw[7] = (__u32)regs->bp;
	} else {
		copy_args(&raw[2], regs);
	}
	raw[8] = 0;
	fr_tracepoint_end(&m, ctx, FR_BPF_SYS_ENTER, 68);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs___kernel *regs, long ret)
{
	struct fr_made m;
	__u64 *raw;

	if (!fr_tracepoint_begin(&m, FR_BPF_SYS_EXIT, fr_event_of[FR_BPF_SYS_EXIT]))
		return 0;
	raw = m.raw;
	raw[1] = (__s64)(int)regs->orig_ax;
	raw[2] = ret;
	raw[3] = 0;
	fr_tracepoint_end(&m, ctx, FR_BPF_SYS_EXIT, 28);
	return 0;
}

/* Begins the record of the system call NR, if it is recorded. perf leaves out those of 32-bit processes. */
static __always_inline int begin_call(struct fr_made *m, __u32 kind, __u32 nr)
{
	__u32 event;

	if (nr >= FR_BPF_CALLS_MAX)
		return 0;
	FR_OPAQUE(nr);
	event = fr_event_of_call[kind - FR_BPF_CALL_ENTER][nr & (FR_BPF_CALLS_MAX - 1)];
	return event && !fr_is_compat() && fr_tracepoint_begin(m, kind, event - 1);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_enter, struct pt_regs___kernel *regs, long id)
{
	struct fr_made m;
	__u64 *raw;
	__u32 end;

	if (!begin_call(&m, FR_BPF_CALL_ENTER, id))
		return 0;
	raw = m.raw;
	raw[1] = (__u32)id;
	copy_args(&raw[2], regs);
	end = m.tp->data_bytes / 8 & 15;
	raw[end] = 0; /* the padding behind the call's arguments */
	fr_tracepoint_end(&m, ctx, FR_BPF_CALL_ENTER, m.tp->raw_bytes & 127);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_exit, struct pt_regs___kernel *regs, long ret)
{
	struct fr_made m;
	__u64 *raw;

	if (!begin_call(&m, FR_BPF_CALL_EXIT, regs->orig_ax))
		return 0;
	raw = m.raw;
	raw[1] = (__u32)regs->orig_ax;
	raw[2] = ret;
	raw[3] = 0;
	fr_tracepoint_end(&m, ctx, FR_BPF_CALL_EXIT, 28);
	return 0;
}

/* __trace_sched_switch_state() in include/trace/events/sched.h */
static __always_inline __u64 reported_state(_Bool preempt, __u32 state, __u32 exit_state)
{
	__u32 reported = (state | exit_state) & TASK_REPORT;

	if (preempt)
		return TASK_REPORT_MAX;
	if ((state & TASK_IDLE) == TASK_IDLE)
		reported = TASK_REPORT_IDLE;
	if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		reported = TASK_UNINTERRUPTIBLE;
	for (__u32 bit = TASK_REPORT_IDLE; bit; bit >>= 1)
		if (reported & bit)
			return bit;
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, _Bool preempt, struct task_struct___tp *prev, struct task_struct___tp *next,
	unsigned int prev_state)
{
	struct fr_made m;
	__u32 *raw;

	if (!fr_tracepoint_begin(&m, FR_BPF_SCHED_SWITCH, fr_event_of[FR_BPF_SCHED_SWITCH]))
		return 0;
	raw = m.raw;
	copy_comm(&raw[2], prev);
	raw[6] = prev->pid;
	raw[7] = prev->prio;
	*(__u64 *)&raw[8] = reported_state(preempt, prev_state, prev->exit_state);
	copy_comm(&raw[10], next);
	raw[14] = next->pid;
	raw[15] = next->prio;
	raw[16] = 0;
	fr_tracepoint_end(&m, ctx, FR_BPF_SCHED_SWITCH, 68);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct___tp *task)
{
	struct fr_made m;
	__u32 *raw;

	if (!fr_tracepoint_begin(&m, FR_BPF_SCHED_WAKING, fr_event_of[FR_BPF_SCHED_WAKING]))
		return 0;
	raw = m.raw;
	copy_comm(&raw[2], task);
	raw[6] = task->pid;
	raw[7] = task->prio;
	raw[8] = task->thread_info.cpu;
	raw[9] = 0;
	fr_tracepoint_end(&m, ctx, FR_BPF_SCHED_WAKING, 36);
	return 0;
}

/* Returns 1, because 0 would take the event away from other recorders. */
SEC("tracepoint")
int any_tracepoint(void *ctx)
{
	const __u64 cookie = bpf_get_attach_cookie(ctx);
	struct fr_made m;

	if (fr_tracepoint_begin(&m, FR_BPF_ANY_TRACEPOINT, cookie) && fr_tracepoint_read(&m, ctx))
		fr_tracepoint_end(&m, ctx, FR_BPF_ANY_TRACEPOINT, m.raw_bytes);
	return 1;
}
