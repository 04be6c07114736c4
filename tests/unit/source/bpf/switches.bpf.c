// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In processes with the name `comm`: getppid() switches the event raw_syscalls:sys_enter off, getpgrp() on,
 * and getsid() on for 500 ms. Two calls report how long the switches took: getpgid() the mean in ns, and
 * getegid() how many of a thousand took less than a microsecond. This is the time of the whole call. With
 * Set=effect=1, it ends when the switch has effect, before the record of it wakes flightrecd.
 */
#include <linux/bpf.h>
#include <asm/unistd.h>

#define FLIGHTREC_UNIT FLIGHTREC_UNIT_COUNT
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

#define EVENT "raw_syscalls:sys_enter"
const volatile char comm[16] = "frtest-switch";
const volatile __u32 effect = 0;
__u64 sum_ns, n, fast;

static __always_inline int is_wanted(void)
{
	char name[16] = "";

	bpf_get_current_comm(name, sizeof(name));
	for (int i = 0; i < 16 && (name[i] || comm[i]); i++)
		if (name[i] != comm[i])
			return 0;
	return 1;
}

static __always_inline int switch_event(__u64 call)
{
	if (call == __NR_getppid)
		return flightrec_event_disable(EVENT);
	if (call == __NR_getpgrp)
		return flightrec_event_enable(EVENT, 1);
	return flightrec_event_enable_for(EVENT, 1, 500000000);
}

static __always_inline void took(__u64 ns)
{
	sum_ns += ns;
	n++;
	fast += ns < 1000;
}

/* Does what the macros of the header do, and stops the time between their two parts. */
static __always_inline void switch_in_parts(__u64 call)
{
	const __u32 slot = flightrec_event_slot(EVENT), is_off = call == __NR_getppid;
	const __u64 begin = bpf_ktime_get_ns(), now = flightrec_switch_state(slot, is_off),
		    end = bpf_ktime_get_ns();

	if (!now)
		return;
	flightrec_report_switch(slot, is_off, 0, now);
	took(end - begin);
}

SEC("raw_tp/sys_enter")
int sys_enter(struct bpf_raw_tracepoint_args *ctx)
{
	const __u64 call = ctx->args[1];
	__u64 begin;

	if (call != __NR_getppid && call != __NR_getpgrp && call != __NR_getsid && call != __NR_getpgid &&
		call != __NR_getegid)
		return 0;
	if (!is_wanted())
		return 0;
	if (call == __NR_getpgid || call == __NR_getegid) {
		if (n)
			flightrec_trigger("switches", call == __NR_getegid ? 1000 * fast / n : sum_ns / n,
				flightrec_threshold);
		return 0;
	}
	if (effect) {
		switch_in_parts(call);
		return 0;
	}
	begin = bpf_ktime_get_ns();
	if (switch_event(call))
		took(bpf_ktime_get_ns() - begin);
	return 0;
}
