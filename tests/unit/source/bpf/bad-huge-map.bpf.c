// SPDX-License-Identifier: GPL-2.0-or-later
/* 16 GiB, if the kernel would give them. */
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1u << 31);
	__type(key, __u32);
	__type(value, __u64);
} everybody SEC(".maps");

SEC("raw_tp/sys_enter")
int remembers(__u64 *ctx)
{
	__u32 key = (__u32)ctx[1];
	__u64 one = 1;

	bpf_map_update_elem(&everybody, &key, &one, 0);
	return flightrec_trigger("x", one, 1);
}
