// SPDX-License-Identifier: GPL-2.0-or-later
/* Two variants of one program (NAME_btf, NAME_classic), and programs for tracepoints that no kernel has. */
#include <linux/bpf.h>
#include <asm/unistd.h>
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sys_enter")
int call_btf(__u64 *ctx)
{
	struct flightrec_subject s;

	if (ctx[1] != __NR_getppid)
		return 0;
	/* Do what a program does that gets the task from its tracepoint. */
	flightrec_task(&s, (const void *)bpf_get_current_task());
	flightrec_trigger_for(&s, "by BTF", "the detail", FLIGHTREC_UNIT_BYTES, bpf_ktime_get_ns(), 7, 7);
	return 0;
}

SEC("raw_tp/sys_enter")
int call_classic(struct bpf_raw_tracepoint_args *ctx)
{
	if (ctx->args[1] == __NR_getppid)
		flightrec_trigger("classic", 1, 1);
	return 0;
}

SEC("tp_btf/flightrec_no_such_tracepoint")
int absent_btf(__u64 *ctx)
{
	return 0;
}

SEC("raw_tp/sys_exit")
int absent_classic(__u64 *ctx)
{
	return 0;
}

SEC("?tp_btf/flightrec_no_such_tracepoint")
int optional(__u64 *ctx)
{
	return 0;
}
