// SPDX-License-Identifier: GPL-2.0-or-later
/* A program of a classic tracepoint that returns 0, in two places, and calls a function that does, too. Of
 * Pid=, each second call fires. */
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
	/* A way out of its own: the compiler would make one of all. */
	if (!is_second(__sync_fetch_and_add(&calls, 1)))
		asm volatile("r0 = 0\n exit" ::: "r0");
	flightrec_trigger("second call", 1, 1);
	return 0;
}
