// SPDX-License-Identifier: GPL-2.0-or-later
/* Measures the handlers of hard interrupts. The cause names the interrupted task. The detail is the name of
   the handler or, without BTF, the number of the interrupt. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"
#include "decimal.h"

char LICENSE[] SEC("license") = "GPL";

FR_HANDLER_MAP;

#define REASON "interrupt handler"

SEC("raw_tp/irq_handler_entry")
int irq_handler_entry(void *ctx)
{
	return fr_begin_handler(&begin_ns);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit_btf, int irq, struct irqaction *action)
{
	__u64 now = bpf_ktime_get_ns(), time = fr_end_handler(&begin_ns, now);

	if (time)
		fr_fire_current(REASON, action->name, now, time);
	return 0;
}

SEC("raw_tp/irq_handler_exit")
int irq_handler_exit_classic(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now = bpf_ktime_get_ns(), time = fr_end_handler(&begin_ns, now);
	char detail[FR_DECIMAL_SIZE + 4] = "irq ";

	if (!time)
		return 0;
	fr_decimal(detail + 4, ctx->args[0]);
	fr_fire_current(REASON, detail, now, time);
	return 0;
}
