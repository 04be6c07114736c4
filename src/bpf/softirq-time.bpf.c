// SPDX-License-Identifier: GPL-2.0-or-later
/* Measures each run of a softirq handler, including hard interrupts during that time. The subject is the
   current task: ksoftirqd, or the interrupted one. The detail is the softirq's name. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

#define VECTORS 10

/* In the order of the tracepoint's format. */
static const char names[VECTORS + 1][12] = {
	"hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu", "?"};

FR_HANDLER_MAP;

SEC("raw_tp/softirq_entry")
int softirq_entry(void *ctx)
{
	return fr_begin_handler(&begin_ns);
}

SEC("raw_tp/softirq_exit")
int softirq_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now = bpf_ktime_get_ns(), time = fr_end_handler(&begin_ns, now);
	__u32 vector = ctx->args[0];

	if (!time)
		return 0;
	if (vector > VECTORS)
		vector = VECTORS;
	fr_fire_current("softirq handler", names[vector], now, time);
	return 0;
}
