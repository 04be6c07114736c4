// SPDX-License-Identifier: GPL-2.0-or-later
/* A program on a classic tracepoint. It has two exits that return 0, and calls a subprogram that may return
   0, too. Every second getppid() of the process that Pid= names is an anomaly. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

static __u64 calls;

static __attribute__((noinline)) __u64 is_second(__u64 n)
{
	return n & 1;
}

SEC("tp/syscalls/sys_enter_getppid")
int returns(void *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 != flightrec_pid)
		return 0;
	/* This is in assembler, because the compiler would merge all exits. */
	if (!is_second(__sync_fetch_and_add(&calls, 1)))
		asm volatile("r0 = 0\n exit" ::: "r0");
	flightrec_trigger("second call", 1, 1);
	return 0;
}
