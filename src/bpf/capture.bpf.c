// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes the samples of perf events in place of the kernel, with user stacks that are unwound by tables.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stddef.h>
#include "record.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fr_scratch);
} sample_scratch SEC(".maps");

#define CPUS 8192u

/* The index of the event of each CPU, plus 1: for perf events that a child has inherited. The kernel gives
   them the program, but not the cookie. So an event that is inherited has an instance of this object. */
__u32 inherited[CPUS];

/* Returns the index of the event, plus 1. */
static __always_inline __u64 index_plus_1(struct bpf_perf_event_data *ctx)
{
	const __u64 cookie = bpf_get_attach_cookie(ctx);

	return cookie ? cookie : inherited[bpf_get_smp_processor_id() & (CPUS - 1)];
}

/* Runs when a perf event overflows. Returns 0, so that the kernel does not make a sample, too. */
SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	const __u64 index = index_plus_1(ctx);
	const __u64 ip = PT_REGS_IP(&ctx->regs);
	const int in_kernel = (__s64)ip < 0;
	struct fr_record r;

	if (!index ||
		!fr_record_begin(&r, &sample_scratch, index - 1, ip,
			in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER, ctx->sample_period))
		return 0;
	fr_record_add_stacks(&r, ctx, 0);
	fr_record_submit(&r);
	return 0;
}
