// SPDX-License-Identifier: GPL-2.0-or-later
/* Fires when the kernel's khungtaskd finds a task that has been uninterruptible for longer than
   kernel.hung_task_timeout_secs, and again at each check until the task continues. The value is the time
   since the task last began to run. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

#define REASON "hung task"

SEC("tp_btf/sched_process_hang")
int BPF_PROG(sched_process_hang_btf, struct task_struct *task)
{
	__u64 now = fr_rq_clock(bpf_get_current_task_btf());
	struct flightrec_subject s;

	flightrec_task(&s, task);
	flightrec_trigger_for(&s, REASON, 0, FLIGHTREC_UNIT_NS, bpf_ktime_get_ns(),
		now - task->sched_info.last_arrival, flightrec_threshold);
	return 0;
}

/* Without BTF, the task is unknown: in the tracepoint's format, the name and the number of the task are at
   different places in different kernels. */
SEC("raw_tp/sched_process_hang")
int sched_process_hang_classic(void *ctx)
{
	struct flightrec_subject s = {};

	flightrec_trigger_for(&s, REASON, 0, FLIGHTREC_UNIT_NONE, bpf_ktime_get_ns(), 0, 0);
	return 0;
}
