/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes PERF_RECORD_SAMPLE records and puts them into the BPF ring of the CPU. The order of the fields is the
 * kernel's (perf_output_sample() in kernel/events/core.c):
 *
 *   header, id, ip, pid, tid, time, cpu, [period], [nr, call chain], [raw size, raw data]
 */

#include "walk.bpf.h"

#include <linux/perf_event.h>

/* The BPF ring of each CPU. User space makes the rings of the CPUs that are recorded. */
struct fr_ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* user space sets the number of CPUs */
	__type(key, __u32);
	__array(values, struct fr_ring_map);
} fr_rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fr_bpf_shared);
} fr_bpf_shared SEC(".maps");

/* The switches of the events; slot 0 is never off. Programs of triggers share this map. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space gives the map of all captures */
	__type(key, __u32);
	__type(value, struct fr_switch);
} fr_switches SEC(".maps");

static __always_inline int fr_is_off(__u32 slot)
{
	const struct fr_switch *s = bpf_map_lookup_elem(&fr_switches, &slot);

	return s && s->is_off;
}

/* What a program knows when it begins a record. */
struct fr_record {
	struct fr_scratch *scratch;
	struct fr_bpf_shared *shared;
	const struct fr_bpf_event *event;
	__u32 index; /* of the event */
	__u32 words; /* words of the record so far */
};

/* Begins a record of the event with the index INDEX, whose pid and tid are those of the current task.
   Returns whether there is such an event, and it is not switched off. */
static __always_inline int fr_record_begin(
	struct fr_record *r, void *scratch_map, __u64 index, __u64 ip, __u16 misc, __u64 period)
{
	__u64 pid_tgid, *words;
	__u32 zero = 0;

	r->scratch = bpf_map_lookup_elem(scratch_map, &zero);
	r->shared = bpf_map_lookup_elem(&fr_bpf_shared, &zero);
	r->index = index % FR_BPF_EVENTS_MAX;
	if (!r->scratch || !r->shared)
		return 0;
	r->event = &r->shared->events[r->index];
	if (fr_is_off(r->event->slot))
		return 0;
	pid_tgid = bpf_get_current_pid_tgid();
	words = r->scratch->words;
	words[0] = PERF_RECORD_SAMPLE | (__u64)misc << 32; /* fr_record_submit() adds the size */
	words[1] = r->event->id;
	words[2] = ip;
	words[3] = pid_tgid >> 32 | pid_tgid << 32;
	words[4] = bpf_ktime_get_ns();
	words[5] = bpf_get_smp_processor_id();
	words[6] = period;
	r->words = r->event->flags & FR_BPF_PERIOD ? 7 : 6;
	return r->event->id != 0;
}

/* Adds the call chain, if the event has one: the kernel's part and the user's part. CTX is the context of the
   program, SKIP the number of innermost kernel frames to leave out. */
static __always_inline void fr_record_add_stacks(struct fr_record *r, void *ctx, __u64 skip)
{
	const __u32 flags = r->event->flags, first = r->words + 1;
	__u64 *words = r->scratch->words;
	__u32 max = r->event->max_stack;
	__u32 at = first;
	long n;

	if (!(flags & FR_BPF_CALLCHAIN))
		return;
	if (flags & FR_BPF_KERNEL_STACK) {
		n = bpf_get_stack(ctx, &words[(at & 15) + 1], FR_BPF_STACK_MAX * sizeof(__u64), skip);
		n = n < 0 ? 0 : (n & 1023) / 8;
		if (n > max)
			n = max;
		if (n) {
			words[at % FR_BPF_WORDS] = PERF_CONTEXT_KERNEL;
			at += n + 1;
		}
	}
	if (flags & FR_BPF_USER_STACK) {
		n = fr_walk_user(r->scratch, at + 1, max);
		if (n) {
			words[at % FR_BPF_WORDS] = PERF_CONTEXT_USER;
			at += n + 1;
		}
	}
	words[(first - 1) % FR_BPF_WORDS] = at - first;
	r->words = at;
}

/* Puts the record into the ring of this CPU. If the ring has no room, counts the sample as lost. */
static __always_inline void fr_record_submit(struct fr_record *r)
{
	__u32 cpu = bpf_get_smp_processor_id(), words = r->words % FR_BPF_WORDS, size = words * 8;
	void *ring = bpf_map_lookup_elem(&fr_rings, &cpu);
	__u64 used, wakeup = r->shared->wakeup_bytes, flags = BPF_RB_NO_WAKEUP;

	if (!ring)
		return;
	r->scratch->words[0] |= (__u64)size << 48;
	used = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
	FR_OPAQUE(size);
	size &= FR_BPF_WORDS * 8 - 8;
	/* Only the record that crosses the mark wakes the recorder, which then reads all of them. */
	if ((used < wakeup && used + size + 8 >= wakeup) || r->scratch->wants_round)
		flags = BPF_RB_FORCE_WAKEUP;
	r->scratch->wants_round = 0;
	if (bpf_ringbuf_output(ring, r->scratch->words, size, flags))
		__sync_fetch_and_add(&r->shared->lost[r->index], 1);
}
