/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of a tracepoint's record that do not depend on the tracepoint. Include record.bpf.h first. */

#include "tracepoint.h"

/* User space sets these before it loads the programs, so the verifier removes code that is not needed. */
const volatile __u32 fr_event_of[_FR_BPF_TRACEPOINT_KINDS] = {
	0}; /* the event of a raw tracepoint's program */
/* the events of system calls, by number, plus 1; first of the entries, then of the exits. 0: none */
const volatile __u16 fr_event_of_call[2][FR_BPF_CALLS_MAX] = {0};
const volatile _Bool fr_has_stack[_FR_BPF_TRACEPOINT_KINDS] = {0};
const volatile _Bool fr_has_cgroup = 0;
const volatile __u32 fr_n_cpus = 0; /* the number of possible CPUs */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct thread_info___tp {
	unsigned int status; /* of x86 */
	unsigned int cpu;
};
struct task_struct___tp {
	struct thread_info___tp thread_info;
	int pid, prio, exit_state;
	char comm[16];
};
#pragma clang attribute pop

struct fr_tracepoint_scratch {
	struct fr_scratch s;
	/* With stacks: the raw data, until the call chain is in the record. It begins at byte 4 here and in
	   the record, where the size precedes it. */
	__u64 raw[FR_BPF_RAW_MAX / 8 + 4];
	char comm[16];
	__u64 frames[8];
};
/* Each program has its own scratch memory, because one can interrupt another. */
struct fr_tracepoint_scratch_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, _FR_BPF_TRACEPOINT_KINDS);
	__type(key, __u32);
	__type(value, struct fr_tracepoint_scratch);
};
struct fr_tracepoint_scratch_map fr_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space sets the number of events */
	__type(key, __u32);
	__type(value, struct fr_bpf_tracepoint);
} fr_tracepoints SEC(".maps");

/* [event * possible CPUs + CPU]: the records for which a ring had no room */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} fr_tracepoint_lost SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} fr_cgroup SEC(".maps");

/* The event of a tracepoint while its record is made. */
struct fr_made {
	struct fr_tracepoint_scratch *scratch;
	struct fr_bpf_tracepoint *tp;
	void *ring, *raw;
	__u64 pid_tgid;
	__u32 cpu, event, raw_bytes;
};

static __always_inline struct task_struct___tp *fr_current(void)
{
	return (void *)bpf_get_current_task_btf();
}

static __always_inline int fr_is_own(const struct fr_made *m)
{
	for (int i = 0; i < FR_BPF_OWN_MAX; i++)
		if (m->tp->own_tids[i] == (__u32)m->pid_tgid)
			return 1;
	return 0;
}

/* Begins the record of the event with the index EVENT. Returns whether the event is recorded now and here.
   KIND is a constant. */
static __always_inline int fr_tracepoint_begin(struct fr_made *m, __u32 kind, __u32 event)
{
	/* Linux 6.1 does not know that a variable with an address is constant. */
	__u32 key = kind;

	m->cpu = bpf_get_smp_processor_id();
	m->event = event;
	m->tp = bpf_map_lookup_elem(&fr_tracepoints, &event);
	if (!m->tp || !m->tp->is_enabled || fr_is_off(m->tp->slot))
		return 0;
	m->pid_tgid = bpf_get_current_pid_tgid();
	if (m->tp->own_tgid && m->pid_tgid >> 32 == m->tp->own_tgid && fr_is_own(m))
		return 0;
	m->ring = bpf_map_lookup_elem(&fr_rings, &m->cpu);
	if (!m->ring || (fr_has_cgroup && bpf_current_task_under_cgroup(&fr_cgroup, 0) != 1))
		return 0;
	m->scratch = bpf_map_lookup_elem(&fr_scratch, &key);
	if (!m->scratch)
		return 0;
	m->raw = fr_has_stack[kind] ? (void *)m->scratch->raw + 4 : (void *)&m->scratch->s.words[6] + 4;
	*(__u64 *)m->raw = m->tp->type | m->pid_tgid << 32;
	return 1;
}

static __always_inline void fr_count_lost(const struct fr_made *m)
{
	__u32 i = m->event * fr_n_cpus + m->cpu;
	__u64 *lost = bpf_map_lookup_elem(&fr_tracepoint_lost, &i);

	if (lost)
		__sync_fetch_and_add(lost, 1);
}

/* Reads the raw data from CTX, where the kernel has put a pointer over the common fields. Returns whether
   there is room for it. */
static __always_inline int fr_tracepoint_read(struct fr_made *m, void *ctx)
{
	__u32 end = m->tp->data_bytes, at = m->tp->dynamic, loc = 0;

	m->raw_bytes = m->tp->raw_bytes;
	if (at) {
		bpf_probe_read_kernel(&loc, sizeof(loc), ctx + (at & (FR_BPF_RAW_MAX - 1)));
		end = (loc & 0xffff) + (loc >> 16);
		/* raw_bytes is the size without dynamic data, before its padding */
		m->raw_bytes = ((end - m->tp->dynamic_begin + m->raw_bytes + 4 + 7) & ~7u) - 4;
	}
	if (end < 8 || end > FR_BPF_RAW_MAX || m->raw_bytes > FR_BPF_RAW_MAX + 4) {
		fr_count_lost(m);
		return 0;
	}
	end -= 8;
	FR_OPAQUE(end);
	if (end > FR_BPF_RAW_MAX)
		return 0;
	bpf_probe_read_kernel(m->raw + 8, end, ctx + 8);
	/* perf's padding is zeros, at most 15 bytes */
	*(__u64 *)(m->raw + 8 + end) = 0;
	*(__u64 *)(m->raw + 16 + end) = 0;
	return 1;
}

struct fr_filter_walk {
	const struct fr_made *m;
	__u32 at;
};

static long fr_filter_step(__u32 i, struct fr_filter_walk *f)
{
	const struct fr_bpf_predicate *p = &f->m->tp->filter.predicates[f->at & (FR_BPF_PREDICATES_MAX - 1)];
	const char *from = p->source == FR_BPF_COMM ? f->m->scratch->comm : f->m->raw;
	const __u64 *field = (const __u64 *)(from + (p->source == FR_BPF_RAW ? p->offset & 1023 : 0));
	__u64 x = *field, value = p->value[0];
	int is_true = 0;

	if (p->source == FR_BPF_CPU)
		x = f->m->cpu;
	x = p->is_signed ? (__u64)((__s64)(x << (p->shift & 63)) >> (p->shift & 63))
			 : x << (p->shift & 63) >> (p->shift & 63);
	if (p->op == FR_BPF_AND)
		is_true = (x & value) != 0;
	else if (p->op == FR_BPF_TEXT)
		is_true = (field[0] & p->mask[0]) == value && (field[1] & p->mask[1]) == p->value[1];
	else if (p->op == FR_BPF_EQ)
		is_true = x == value;
	/* Signed numbers with their highest bit inverted have the order of unsigned numbers. */
	x ^= (__u64)p->is_signed << 63;
	value ^= (__u64)p->is_signed << 63;
	if (p->op == FR_BPF_LT)
		is_true = x < value;
	else if (p->op == FR_BPF_LE)
		is_true = x <= value;
	else if (p->op == FR_BPF_GT)
		is_true = x > value;
	else if (p->op == FR_BPF_GE)
		is_true = x >= value;
	f->at = is_true ? p->on_true : p->on_false;
	return f->at >= FR_BPF_PREDICATES_MAX;
}

/* Returns whether the filter accepts the raw data. */
static __always_inline int fr_passes_filter(const struct fr_made *m)
{
	struct fr_filter_walk f = {m, m->tp->filter.first};

	if (!m->tp->filter.n)
		return 1;
	bpf_get_current_comm(m->scratch->comm, sizeof(m->scratch->comm));
	bpf_loop(FR_BPF_PREDICATES_MAX, fr_filter_step, &f, 0);
	return f.at == FR_BPF_ACCEPT;
}

/* Returns whether IP is in the code between a raw tracepoint and the program. */
static __always_inline int fr_is_probe_code(const struct fr_bpf_tracepoint *tp, __u64 ip)
{
	return (ip >= tp->probe[0].start && ip < tp->probe[0].end) ||
	       (ip >= tp->probe[1].start && ip < tp->probe[1].end) ||
	       (ip >= tp->probe[2].start && ip < tp->probe[2].end);
}

/* Finds the frame of the kernel stack before the tracepoint's own frame, and the address of the latter. It
   changes when another recorder adds its program to the tracepoint. WORDS is memory for the search. */
static __always_inline void fr_find_frame(struct fr_bpf_tracepoint *tp, void *ctx, __u64 *words)
{
	long n = bpf_get_stack(ctx, words, 8 * sizeof(*words), 0) / 8;
	__u32 skip = 0;

	for (__u32 i = 0; i < 7; i++)
		if (i + 1 < n && fr_is_probe_code(tp, words[i]))
			skip = i;
	tp->skip = skip;
	tp->ip = n > 0 ? words[skip + 1] : 0;
}

#define FR_TS_COMPAT 2 /* in a system call of a 32-bit process */

static __always_inline int fr_is_compat(void)
{
	return fr_current()->thread_info.status & FR_TS_COMPAT;
}

/* Does the same as fr_add_kernel_stack() for sys_enter. The way from the CPU's entry to this tracepoint is
   always the same, except in 32-bit processes, so its stack is walked only once. A walk takes 2 us. */
static __always_inline __u32 fr_add_entry_stack(struct fr_made *m)
{
	__u32 n = m->tp->n_kernel;

	if (!n || n > 8 || n > m->tp->max_stack || fr_is_compat())
		return 0;
	m->scratch->s.words[7] = PERF_CONTEXT_KERNEL;
	for (int i = 0; i < 8; i++)
		m->scratch->s.words[8 + i] = m->tp->kernel[i];
	m->scratch->s.words[2] = m->tp->kernel[0];
	return n + 1;
}

static __always_inline void fr_keep_entry_stack(struct fr_made *m, __u32 n)
{
	if (!n || n > 8 || n >= m->tp->max_stack || fr_is_compat())
		return;
	for (int i = 0; i < 8; i++)
		m->tp->kernel[i] = m->scratch->s.words[8 + i];
	__sync_fetch_and_or(&m->tp->n_kernel, n);
}

/* Writes the kernel's part of the call chain to words[7] and the following words. Returns its number of
   words. */
static __always_inline __u32 fr_add_kernel_stack(struct fr_made *m, void *ctx, int is_raw)
{
	__u64 *words = m->scratch->s.words;
	const __u64 skip = is_raw ? m->tp->skip : 0;
	const int bytes = (FR_BPF_STACK_MAX + is_raw) * sizeof(*words);
	long n = bpf_get_stack(ctx, &words[is_raw ? 7 : 8], bytes, skip & 255);

	/* The first word is the frame to skip. PERF_CONTEXT_KERNEL takes its place. */
	if (is_raw && n >= 16 && (!fr_is_probe_code(m->tp, words[7]) || fr_is_probe_code(m->tp, words[8]))) {
		fr_find_frame(m->tp, ctx, &words[7]);
		n = bpf_get_stack(ctx, &words[7], bytes, m->tp->skip & 255);
	}
	n = n < 0 ? 0 : (n & 2047) / 8;
	if (is_raw && n)
		n--;
	if (n > m->tp->max_stack)
		n = m->tp->max_stack;
	if (!n)
		return 0;
	words[7] = PERF_CONTEXT_KERNEL;
	words[2] = words[8];
	return n + 1;
}

/* Writes the user's part of the call chain to words[AT] and the following words. Returns its number of
   words. */
static __always_inline __u32 fr_add_user_stack(struct fr_made *m, void *ctx, __u32 at)
{
	__u64 *words = m->scratch->s.words;
	long n;

	FR_OPAQUE(at); /* the compiler knows its bound, but the verifier of Linux 6.1 does not */
	if (!fr_has_unwind || m->tp->flags & FR_BPF_USER_FP) {
		n = bpf_get_stack(
			ctx, &words[(at & 255) + 1], FR_BPF_STACK_MAX * sizeof(*words), BPF_F_USER_STACK);
		n = n < 0 ? 0 : (n & 1023) / 8;
		if (n > m->tp->max_stack)
			n = m->tp->max_stack;
	} else {
		n = fr_walk_user(&m->scratch->s, at + 1, m->tp->max_stack);
	}
	if (!n)
		return 0;
	words[at % FR_BPF_WORDS] = PERF_CONTEXT_USER;
	return n + 1;
}

/* Adds the call chain behind the head of the record. Returns the number of the record's words. */
static __always_inline __u32 fr_add_call_chain(struct fr_made *m, void *ctx, __u32 kind)
{
	const int is_raw = kind < FR_BPF_CALL_ENTER;
	__u32 at = 7, n = 0;

	if (!(m->tp->flags & FR_BPF_CALLCHAIN))
		return 6;
	if (m->tp->flags & FR_BPF_KERNEL_STACK) {
		if (kind == FR_BPF_SYS_ENTER)
			n = fr_add_entry_stack(m);
		if (!n) {
			n = fr_add_kernel_stack(m, ctx, is_raw);
			if (kind == FR_BPF_SYS_ENTER && n)
				fr_keep_entry_stack(m, n - 1);
		}
		at += n;
	}
	if (m->tp->flags & FR_BPF_USER_STACK)
		at += fr_add_user_stack(m, ctx, at);
	m->scratch->s.words[6] = at - 7;
	return at;
}

static __always_inline void fr_tracepoint_submit(const struct fr_made *m, __u32 size)
{
	__u32 zero = 0;
	struct fr_bpf_shared *shared = bpf_map_lookup_elem(&fr_bpf_shared, &zero);
	__u64 used, wakeup = shared ? shared->wakeup_bytes : 0;

	m->scratch->s.words[0] |= (__u64)size << 48;
	used = bpf_ringbuf_query(m->ring, BPF_RB_AVAIL_DATA);
	FR_OPAQUE(size);
	size &= FR_BPF_WORDS * 8 - 8;
	if (bpf_ringbuf_output(m->ring, m->scratch->s.words, size,
		    used < wakeup && used + size + 8 >= wakeup ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		fr_count_lost(m);
}

/* Sets the address and the mode that perf gives to an event. */
static __always_inline void fr_set_ip(struct fr_made *m, void *ctx, __u32 kind)
{
	__u64 *words = m->scratch->s.words;
	struct pt_regs___kernel *regs = 0;
	__u64 ip = 0;

	words[0] = PERF_RECORD_SAMPLE | (__u64)PERF_RECORD_MISC_KERNEL << 32;
	if (kind < FR_BPF_CALL_ENTER) {
		if (!m->tp->ip)
			fr_find_frame(m->tp, ctx, m->scratch->frames);
		ip = m->tp->ip;
	} else if (kind < FR_BPF_ANY_TRACEPOINT || m->tp->flags & FR_BPF_AT_USER) {
		regs = (void *)bpf_task_pt_regs((void *)fr_current());
		ip = regs->ip;
		words[0] = PERF_RECORD_SAMPLE | (__u64)PERF_RECORD_MISC_USER << 32;
	} else {
		bpf_probe_read_kernel(&regs, sizeof(regs), ctx);
		ip = BPF_CORE_READ(regs, ip);
	}
	words[2] = ip;
}

/* Applies the filter, and puts the record with RAW_BYTES bytes of raw data into the ring. KIND is a constant.
 */
static __always_inline void fr_tracepoint_end(struct fr_made *m, void *ctx, __u32 kind, __u32 raw_bytes)
{
	__u64 *words = m->scratch->s.words;
	__u32 n = 6;

	if (!fr_passes_filter(m))
		return;
	words[1] = m->tp->first_id + m->cpu;
	words[3] = m->pid_tgid >> 32 | m->pid_tgid << 32;
	words[4] = bpf_ktime_get_ns();
	words[5] = m->cpu;
	fr_set_ip(m, ctx, kind);
	if (fr_has_stack[kind]) {
		n = fr_add_call_chain(m, ctx, kind);
		FR_OPAQUE(n);
		FR_OPAQUE(raw_bytes);
		if (n > 8 + 2 * FR_BPF_STACK_MAX + 2 || raw_bytes > FR_BPF_RAW_MAX + 4)
			return;
		bpf_probe_read_kernel((void *)&words[n] + 4, raw_bytes, m->raw);
	}
	*(__u32 *)&words[n] = raw_bytes;
	fr_tracepoint_submit(m, n * 8 + 4 + raw_bytes);
}
