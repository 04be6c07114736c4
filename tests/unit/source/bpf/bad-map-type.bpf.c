// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 flightrec_abi SEC(".rodata.flightrec") = 1;
char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} flightrec_events SEC(".maps");

SEC("raw_tp/sys_enter")
int program(void *ctx)
{
	return 0;
}
