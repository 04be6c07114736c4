// SPDX-License-Identifier: GPL-2.0-or-later
/* Measures the softirq handlers, including hard interrupts during that time. The cause names the current
   task: ksoftirqd or the interrupted task. The detail is the name of the softirq. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

#define VECTORS 10

/* The names, in the order of the tracepoint's format. The last name is for unknown numbers. */
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
