// SPDX-License-Identifier: GPL-2.0-or-later
/* When the thread `who` calls getppid(), this program keeps the CPU for three and a half seconds. That is a
   soft lockup if watchdog_thresh is 1. The program is not for a trigger: frtest-provoke loads it. */
#include <linux/bpf.h>
#include <asm/unistd.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define LONG_NS 3500000000ULL
#define LOOPS (1 << 20)

const volatile __u32 who = 0;

static long look(__u32 i, __u64 *until)
{
	return bpf_ktime_get_ns() >= *until;
}

static long look_often(__u32 i, __u64 *until)
{
	bpf_loop(LOOPS, look, until, 0);
	return bpf_ktime_get_ns() >= *until;
}

SEC("raw_tp/sys_enter")
int spin(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 until = bpf_ktime_get_ns() + LONG_NS;

	if (ctx->args[1] == __NR_getppid && (__u32)bpf_get_current_pid_tgid() == who)
		bpf_loop(LOOPS, look_often, &until, 0);
	return 0;
}
