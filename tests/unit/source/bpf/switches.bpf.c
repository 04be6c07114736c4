// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Switches the event raw_syscalls:sys_enter: getppid() switches it off, getpgrp() on, and getsid() on for
 * 200 ms. The value of the anomaly is the time that the call took. The array `switched` counts the calls that
 * have switched.
 */
#include <linux/bpf.h>
#include <asm/unistd.h>

#define FLIGHTREC_UNIT FLIGHTREC_UNIT_NS
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp/sys_enter")
int sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 begin, ns;
	int done = 0;

	if (ctx->args[1] != __NR_getppid && ctx->args[1] != __NR_getpgrp && ctx->args[1] != __NR_getsid)
		return 0;
	begin = bpf_ktime_get_ns();
	if (ctx->args[1] == __NR_getppid)
		done = flightrec_event_disable("raw_syscalls:sys_enter");
	else if (ctx->args[1] == __NR_getpgrp)
		done = flightrec_event_enable("raw_syscalls:sys_enter", 1);
	else
		done = flightrec_event_enable_for("raw_syscalls:sys_enter", 1, 200000000);
	ns = bpf_ktime_get_ns() - begin;
	if (done)
		flightrec_trigger("switched", ns, flightrec_threshold);
	return 0;
}
