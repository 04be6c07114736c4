// SPDX-License-Identifier: MIT
/*
 * Fires when it takes long to open a file, for example because an NFS server is dead, a FIFO has no peer, or
 * a disk spins up.
 *
 *     clang -target bpf -mcpu=v3 -g -O2 -idirafter /usr/include/$(uname -m)-linux-gnu \
 *         -c slow-open.bpf.c -o slow-open.bpf.o
 *
 *     [Trigger slow-open]
 *     Program=/etc/flightrec/slow-open.bpf.o
 *     Threshold=20ms
 *     Set=only_reading=yes
 */
#include <linux/bpf.h>

#define FLIGHTREC_UNIT FLIGHTREC_UNIT_NS
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";

const volatile _Bool only_reading = 0; /* ignore files that are opened for writing */

/* The fields of the tracepoint, as its format file in tracefs lists them. */
struct sys_enter_openat {
	__u64 common;
	long nr, dfd;
	const char *filename;
	long flags, mode;
};

/* For each thread, the time when its call began. The map has a fixed size. When it is full, it evicts the
   least recently used entries: those are calls whose end was never seen. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} begins SEC(".maps");

/* A tracepoint program returns 1. If it returned 0, nobody could record the tracepoint any more. */
SEC("tracepoint/syscalls/sys_enter_openat")
int begin(struct sys_enter_openat *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();

	if (!only_reading || (ctx->flags & 3) == 0)
		bpf_map_update_elem(&begins, &tid, &now, BPF_ANY);
	return 1;
}

SEC("tracepoint/syscalls/sys_exit_openat")
int end(void *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 *at = bpf_map_lookup_elem(&begins, &tid), time;

	if (!at)
		return 1;
	time = bpf_ktime_get_ns() - *at;
	bpf_map_delete_elem(&begins, &tid);
	flightrec_trigger("slow open", time, flightrec_threshold);
	return 1;
}
