// SPDX-License-Identifier: GPL-2.0-or-later
/* The time of one run of a softirq's handler, with the hard interrupts that came meanwhile. The subject is
   the task under which it ran, ksoftirqd or who was interrupted; the detail is the softirq's name. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

#define VECTORS 10

/* In the kernel's order, which is ABI by the tracepoint's format. */
static const char names[VECTORS + 1][12] = {
	"hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu", "?"};

/* They do not nest. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} begin_ns SEC(".maps");

SEC("raw_tp/softirq_entry")
int softirq_entry(void *ctx)
{
	__u32 zero = 0;
	__u64 *begin = bpf_map_lookup_elem(&begin_ns, &zero);

	if (begin)
		*begin = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/softirq_exit")
int softirq_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 zero = 0, vector = ctx->args[0];
	__u64 *begin = bpf_map_lookup_elem(&begin_ns, &zero), now, time;
	struct flightrec_subject s;

	if (!begin || !*begin)
		return 0;
	now = bpf_ktime_get_ns();
	time = now - *begin;
	*begin = 0;
	if (fr_below(time))
		return 0;
	if (vector > VECTORS)
		vector = VECTORS;
	flightrec_current(&s);
	flightrec_trigger_for(
		&s, "softirq handler", names[vector], FLIGHTREC_UNIT_NS, now, time, flightrec_threshold);
	return 0;
}
