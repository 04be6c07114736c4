// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 flightrec_abi SEC(".rodata.flightrec") = 99;
char LICENSE[] SEC("license") = "GPL";

SEC("raw_tp/sys_enter")
int program(void *ctx)
{
	return 0;
}
