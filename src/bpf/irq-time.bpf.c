// SPDX-License-Identifier: GPL-2.0-or-later
/* The time of one hard interrupt's handler. The subject is who was interrupted, the detail is the handler's
   name, or without BTF the interrupt's number. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"
#include "decimal.h"

char LICENSE[] SEC("license") = "GPL";

/* Handlers do not nest. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} begin_ns SEC(".maps");

static __always_inline void begins(void)
{
	__u32 zero = 0;
	__u64 *begin = bpf_map_lookup_elem(&begin_ns, &zero);

	if (begin)
		*begin = bpf_ktime_get_ns();
}

/* The handler's time where it reached the threshold, else 0. */
static __always_inline __u64 ends(__u64 now)
{
	__u32 zero = 0;
	__u64 *begin = bpf_map_lookup_elem(&begin_ns, &zero), time;

	if (!begin || !*begin)
		return 0;
	time = now - *begin;
	*begin = 0;
	return fr_below(time) ? 0 : time;
}

static __always_inline void fire(const char *detail, __u64 now, __u64 time)
{
	struct flightrec_subject s;

	flightrec_current(&s);
	flightrec_trigger_for(
		&s, "interrupt handler", detail, FLIGHTREC_UNIT_NS, now, time, flightrec_threshold);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry_btf)
{
	begins();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit_btf, int irq, struct irqaction *action)
{
	__u64 now = bpf_ktime_get_ns(), time = ends(now);

	if (time)
		fire(action->name, now, time);
	return 0;
}

SEC("raw_tp/irq_handler_entry")
int irq_handler_entry_classic(void *ctx)
{
	begins();
	return 0;
}

SEC("raw_tp/irq_handler_exit")
int irq_handler_exit_classic(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now = bpf_ktime_get_ns(), time = ends(now);
	char detail[FR_DECIMAL_SIZE + 4] = "irq ";

	if (!time)
		return 0;
	fr_decimal(detail + 4, ctx->args[0]);
	fire(detail, now, time);
	return 0;
}
