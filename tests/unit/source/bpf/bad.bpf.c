// SPDX-License-Identifier: GPL-2.0-or-later
/* BPF objects that must be refused. CMakeLists.txt compiles this file once for each of them, with other
 * macros. */
#include <linux/bpf.h>

#if defined(STRANGER) || defined(ABI)
#include <bpf/bpf_helpers.h>
#define SECTION "raw_tp/sys_enter"
#define flightrec_trigger(reason, value, threshold) 0
#else
#include <flightrec/trigger.bpf.h>
#endif

char LICENSE[] SEC("license") = "GPL";

#ifdef ABI
const volatile __u32 flightrec_abi SEC(".rodata.flightrec") = ABI;
#endif

#ifdef MAP_TYPE
struct {
	__uint(type, MAP_TYPE);
	__uint(max_entries, 65536);
#if MAP_KEY
	__type(key, __u32);
	__type(value, __u32);
#endif
} flightrec_events SEC(".maps");
#endif

#ifdef SECTION
SEC(SECTION)
int program(void *ctx)
{
	return flightrec_trigger("x", 1, 1);
}
#endif

#ifdef VERIFIER
SEC("raw_tp/sys_enter")
int reads_anywhere(__u64 *ctx)
{
	const char *where = (const char *)ctx[0];

	return flightrec_trigger("x", *where, 1);
}
#endif

#ifdef HUGE_MAP
/* The kernel would need 16 GiB for this map. */
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
#endif
