/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Walks the user stack of the current task by the tables of unwind.h (x86-64).
 *
 * A register is loaded only when a rule needs its value: until then, the walk keeps the address where a
 * callee has saved it. So one frame costs one read of user memory, for the return address.
 */

#include "capture.h"
#include "young.bpf.h"

/* Makes the compiler forget what it knows about X, so that it does not remove or move a check that the
   verifier needs. */
#define FR_OPAQUE(x) asm volatile("" : "+r"(x))

enum { FR_AX, FR_DX, FR_CX, FR_BX, FR_SI, FR_DI, FR_BP, FR_SP, FR_R8 };
#define FR_USER_CS 0x33	  /* of a 64-bit process */
#define FR_ARGS_MAX 65536 /* the lowest address of code, on all machines with default settings */
#define FR_PF_KTHREAD 0x00200000
#define FR_PF_IO_WORKER 0x00000010 /* has no user stack */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs___kernel {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
		flags, sp;
};
struct task_struct___walk {
	unsigned int flags;
	unsigned int in_execve : 1;
	struct mm_struct *mm;
};
#pragma clang attribute pop

struct fr_walk {
	__u64 regs[16];	 /* DWARF numbers: the value, or the address of the saved value */
	__u32 in_memory; /* bit n: regs[n] is the address of the saved value */
	__u32 lost;	 /* bit n: the value of register n is not known */
	__u64 ip;
	__u32 is_exact;	  /* ip is the address of the next instruction, and not a return address */
	__u32 at, n, max; /* words[at] gets the next frame; n of at most max frames are there */
	__u32 result;	  /* enum fr_unwind_result */
	__u32 fallback;	  /* the first reason to use a frame pointer instead of a table; 0: none */
	__u32 process;	  /* fr_unwind_at; 0: not known */
	__u32 n_maps;
	__u32 young; /* the entry whose maps are used in place of those of the process, or FR_YOUNG_NONE */
	__u32 pid;
	__u32 object;
	__u32 stamp;		/* of the object, if the map is from the entry */
	__u64 start, end, bias; /* the map that was found last; end 0: none */
	struct fr_unwind_change change;
	/* The bounds of a binary search. They are in memory, because the verifier tracks the values of local
	   variables, and then would follow each way through the search. */
	volatile __u32 low, high;
};

/* The memory in which a program makes a record. One program runs only once on a CPU at a time, and each kind
   of program has its own memory, because an interrupt can run another program. */
struct fr_scratch {
	struct fr_walk walk;
	__u64 wants_round; /* the record shall wake the recorder */
	__u64 words[FR_BPF_WORDS];
};

static __always_inline void *fr_chunk(fr_unwind_at at)
{
	__u32 zero = 0, chunk = at >> FR_UNWIND_AT_BITS;
	void *inner = bpf_map_lookup_elem(&fr_unwind_chunks, &chunk);

	return inner ? bpf_map_lookup_elem(inner, &zero) : 0;
}

static __always_inline __u32 fr_offset(fr_unwind_at at)
{
	return (at & ((1u << FR_UNWIND_AT_BITS) - 1)) * FR_UNWIND_AT_UNIT;
}

static __always_inline __u64 fr_load64(const void *chunk, __u64 offset)
{
	offset &= FR_UNWIND_CHUNK_BYTES - 8;
	FR_OPAQUE(offset);
	offset &= FR_UNWIND_CHUNK_BYTES - 8;
	return *(const __u64 *)(chunk + offset);
}

static __always_inline __u32 fr_load32(const void *chunk, __u64 offset)
{
	offset &= FR_UNWIND_CHUNK_BYTES - 4;
	FR_OPAQUE(offset);
	offset &= FR_UNWIND_CHUNK_BYTES - 4;
	return *(const __u32 *)(chunk + offset);
}

static __always_inline struct fr_unwind_shared *fr_unwind_shared_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&fr_unwind_shared, &zero);
}

static __always_inline int fr_read_user(__u64 *ret, __u64 address)
{
	return bpf_probe_read_user(ret, sizeof(*ret), (const void *)address);
}

/* Sets the process of the walk, or its young entry. */
static __always_inline void fr_find_process(struct fr_walk *w, struct fr_unwind_shared *shared, __u32 pid)
{
	const __u32 hash = fr_unwind_hash(pid);
	/* Read this before the slot: then the slot has all changes before this time. */
	const __u64 synced_ns = *(volatile __u64 *)&shared->synced_ns;
	void *chunk;

	w->process = 0;
	w->pid = pid;
	for (__u32 i = 0; i < FR_UNWIND_PROBES; i++) {
		__u64 slot = *(volatile __u64 *)&shared->slots[(hash + i) % FR_UNWIND_SLOTS];

		if ((__u32)slot == pid) {
			w->process = slot >> 32;
			break;
		}
	}
	w->change = shared->changes[hash % FR_UNWIND_CHANGES];
	if (w->change.ns < synced_ns)
		w->change.end = 0;
	chunk = w->process ? fr_chunk(w->process) : 0;
	if (chunk)
		w->n_maps = fr_load32(chunk, fr_offset(w->process));
	else
		w->process = 0;
	if (!w->process || (w->change.start == 0 && w->change.end == ~0ULL))
		w->young = fr_young_get(shared, pid);
}

/* The same as fr_find_map() in the young entry. Returns a negative number if it is not known. */
static __always_inline int fr_find_young_map(struct fr_walk *w, struct fr_unwind_shared *shared, __u64 pc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fr_unwind_map map = {0};
	int r = fr_young_find_map(w->young, w->pid, pc, &map);

	if (r == 0) {
		r = fr_young_ask(shared, task, w->pid, w->young, pc);
		if (r > 0 && fr_young_find_map(w->young, w->pid, pc, &map) <= 0)
			r = -1;
	}
	if (r <= 0)
		return r;
	w->start = map.start;
	w->bias = map.bias;
	w->object = map.object;
	w->stamp = map.stamp;
	return 1;
}

/* User space makes the tables of files that it knows, so it must hear of other files, too. */
static __always_inline void fr_count_miss(const struct fr_walk *w, struct fr_unwind_shared *shared)
{
	const __u64 map = fr_unwind_miss_map(w->pid, w->start);
	struct fr_unwind_miss *miss = &shared->misses[fr_unwind_miss_hash(map)];

	if (miss->map != map) {
		miss->hits = 0;
		miss->map = map;
	}
	miss->hits++;
}

/* Finds the map with the address PC. Returns whether there is one. */
static __always_inline int fr_find_map(struct fr_walk *w, __u64 pc)
{
	const __u32 begin = fr_offset(w->process) + sizeof(struct fr_unwind_process);
	void *chunk;
	__u64 at;

	if (pc >= w->start && pc < w->end)
		return 1;
	w->end = 0;
	chunk = fr_chunk(w->process);
	if (!chunk)
		return 0;
	w->low = 0;
	w->high = w->n_maps;
	for (int i = 0; i < 14 && w->low < w->high; i++) {
		__u32 middle = (w->low + w->high) / 2;

		if (fr_load64(chunk, begin + (__u64)middle * sizeof(struct fr_unwind_map)) <= pc)
			w->low = middle + 1;
		else
			w->high = middle;
	}
	if (!w->low)
		return 0;
	at = begin + (__u64)(w->low - 1) * sizeof(struct fr_unwind_map);
	w->start = fr_load64(chunk, at);
	w->end = fr_load64(chunk, at + offsetof(struct fr_unwind_map, end));
	w->bias = fr_load64(chunk, at + offsetof(struct fr_unwind_map, bias));
	w->object = fr_load32(chunk, at + offsetof(struct fr_unwind_map, object));
	if (pc < w->end)
		return 1;
	w->end = 0;
	return 0;
}

/* Reads the rule of the address PC of OBJECT to RET. If there is none, its kind is FR_UNWIND_NONE. */
static __always_inline void fr_find_rule(
	struct fr_walk *w, const struct fr_unwind_object *object, __u64 pc, struct fr_unwind_rule *ret)
{
	__u32 page = (__u32)(pc >> FR_UNWIND_PAGE_BITS) - object->first_page, number;
	fr_unwind_at pages = object->pages, rules = object->rules, rows;
	__u64 first, at;
	void *chunk;

	ret->kind = FR_UNWIND_NONE;
	if (page >= object->n_pages || pc >> (FR_UNWIND_PAGE_BITS + 32))
		return;
	chunk = fr_chunk(pages);
	if (!chunk)
		return;
	first = fr_load64(chunk, fr_offset(pages) + (__u64)page * sizeof(struct fr_unwind_page));
	rows = (__u32)first;
	w->low = 0;
	w->high = first >> 32;
	chunk = fr_chunk(rows);
	if (!chunk)
		return;
	/* the last row that begins at or before PC */
	for (int i = 0; i < 17 && w->low < w->high; i++) {
		__u32 middle = (w->low + w->high) / 2;

		if ((fr_load32(chunk, fr_offset(rows) + (__u64)middle * 4) & 0xffff) <= (pc & 0xffff))
			w->low = middle + 1;
		else
			w->high = middle;
	}
	if (!w->low)
		return;
	number = fr_load32(chunk, fr_offset(rows) + (__u64)(w->low - 1) * 4) >> 16;
	chunk = fr_chunk(rules);
	if (!chunk || number >= object->n_rules)
		return;
	at = fr_offset(rules) + (__u64)number * sizeof(*ret);
	((__u64 *)ret)[0] = fr_load64(chunk, at);
	((__u64 *)ret)[1] = fr_load64(chunk, at + 8);
	((__u64 *)ret)[2] = fr_load64(chunk, at + 16);
}

/* Reads the value of register N. Returns 0; or not 0 if it is not known. */
static __always_inline int fr_get_register(const struct fr_walk *w, __u32 n, __u64 *ret)
{
	__u64 value = w->regs[n & 15];

	if (w->lost >> (n & 15) & 1)
		return -1;
	if (w->in_memory >> (n & 15) & 1 && fr_read_user(&value, value))
		return -1;
	*ret = value;
	return 0;
}

static __always_inline void fr_set_register(struct fr_walk *w, __u32 n, __u64 value, int in_memory)
{
	w->regs[n] = value;
	w->lost &= ~(1u << n);
	if (in_memory)
		w->in_memory |= 1u << n;
	else
		w->in_memory &= ~(1u << n);
}

/* Ends the walk. Returns 1, for bpf_loop(). */
static __always_inline long fr_end_walk(struct fr_walk *w, __u32 result)
{
	w->result = result == FR_UNWIND_WHOLE ? w->fallback : result; /* WHOLE is 0, as no fallback is */
	return 1;
}

/* Moves to the caller by the chain of frame pointers. WHY is the reason to use it; FR_UNWIND_WHOLE: the code
   is known to have frame pointers. Returns 0; or 1 if the walk has ended. */
static __always_inline long fr_step_frame_pointer(struct fr_walk *w, __u32 why)
{
	__u64 bp, frame[2];

	if (!w->fallback)
		w->fallback = why;
	if (fr_get_register(w, FR_BP, &bp))
		return fr_end_walk(w, FR_UNWIND_NO_RULE);
	if (!bp)
		return fr_end_walk(w, FR_UNWIND_WHOLE);
	if (bp < w->regs[FR_SP] || bp & 7)
		return fr_end_walk(w, w->fallback ? w->fallback : FR_UNWIND_NO_RULE);
	if (bpf_probe_read_user(frame, sizeof(frame), (const void *)bp))
		return fr_end_walk(w, FR_UNWIND_UNREADABLE);
	w->lost = ~(1u << FR_SP | 1u << FR_BP);
	fr_set_register(w, FR_BP, frame[0], 0);
	w->regs[FR_SP] = bp + 16;
	w->ip = frame[1];
	w->is_exact = 0;
	return w->ip ? 0 : fr_end_walk(w, FR_UNWIND_WHOLE);
}

/* Moves from a signal handler's return code to the interrupted code. */
static __always_inline long fr_step_signal(struct fr_walk *w)
{
	/* the order of struct sigcontext from offset 40 of the ucontext on: r8 to r15, di, si, bp, bx, dx,
	   ax, cx, sp, ip */
	const __u64 context = w->regs[FR_SP] + 40;

	w->lost = 0;
	w->in_memory = 0xffff & ~(1u << FR_SP);
	for (int i = 0; i < 8; i++)
		w->regs[FR_R8 + i] = context + i * 8;
	w->regs[FR_DI] = context + 64;
	w->regs[FR_SI] = context + 72;
	w->regs[FR_BP] = context + 80;
	w->regs[FR_BX] = context + 88;
	w->regs[FR_DX] = context + 96;
	w->regs[FR_AX] = context + 104;
	w->regs[FR_CX] = context + 112;
	if (fr_read_user(&w->regs[FR_SP], context + 120) || fr_read_user(&w->ip, context + 128))
		return fr_end_walk(w, FR_UNWIND_UNREADABLE);
	w->is_exact = 1;
	return 0;
}

/* The entry point of the dynamic linker has no call frame information. Its frame pointer is 0, and the number
   of arguments is on the stack where other code has its return address. */
static __always_inline int fr_is_at_start(const struct fr_walk *w)
{
	__u64 bp, n_args;

	return !fr_get_register(w, FR_BP, &bp) && !bp && !fr_read_user(&n_args, w->regs[FR_SP]) &&
	       n_args < FR_ARGS_MAX;
}

/* Code without a rule: the return code of a signal handler, which has none in some libraries and in Go, is
   recognised by its instructions, mov $15, %rax; syscall. */
static __always_inline long fr_step_without_rule(struct fr_walk *w)
{
	__u64 code = 0;

	if (!w->is_exact && !fr_read_user(&code, w->ip) && code == 0x0f0000000fc0c748)
		return fr_step_signal(w);
	if (fr_is_at_start(w))
		return fr_end_walk(w, FR_UNWIND_WHOLE);
	return fr_step_frame_pointer(w, FR_UNWIND_NO_RULE);
}

static __always_inline long fr_step_rule(struct fr_walk *w, const struct fr_unwind_rule *rule)
{
	static const __u32 saved[] = FR_UNWIND_SAVED_REGISTERS;
	__u64 cfa, ip, base;

	if (fr_get_register(w, rule->reg, &base))
		return fr_end_walk(w, FR_UNWIND_NO_RULE);
	cfa = base + (__s64)rule->cfa_offset;
	if (rule->kind == FR_UNWIND_DEREFERENCE || rule->kind == FR_UNWIND_REALIGNED) {
		if (fr_read_user(&cfa, cfa))
			return fr_end_walk(w, FR_UNWIND_UNREADABLE);
		cfa += (__s64)rule->add;
	} else if (rule->kind == FR_UNWIND_PLT &&
		   (w->ip & (__u32)rule->add >> 8) >= ((__u32)rule->add & 255)) {
		cfa += 8;
	}
	if (cfa <= w->regs[FR_SP] && w->n > 1)
		return fr_end_walk(w, FR_UNWIND_NO_RULE);
	if (fr_read_user(&ip, cfa + (__s64)rule->ra))
		return fr_end_walk(w, FR_UNWIND_UNREADABLE);
	if (rule->kind != FR_UNWIND_REALIGNED)
		base = cfa;
	for (int i = 0; i < FR_UNWIND_SAVED; i++) {
		if (rule->saved[i] == FR_UNWIND_LOST)
			w->lost |= 1u << saved[i];
		else if (rule->saved[i] == FR_UNWIND_HERE && rule->kind == FR_UNWIND_REALIGNED)
			fr_set_register(w, saved[i], base, 1);
		else if (rule->saved[i] != FR_UNWIND_SAME)
			fr_set_register(w, saved[i], base + (__s64)rule->saved[i], 1);
	}
	/* The callee can have changed all other registers. */
	w->lost |= 1u << FR_AX | 1u << FR_DX | 1u << FR_CX | 1u << FR_SI | 1u << FR_DI | 0xf00;
	w->regs[FR_SP] = cfa;
	w->ip = ip;
	w->is_exact = 0;
	return ip ? 0 : fr_end_walk(w, FR_UNWIND_WHOLE);
}

struct fr_walk_ctx {
	struct fr_scratch *scratch;
	struct fr_unwind_shared *shared;
};

/* Records one frame, and moves to its caller. Returns 1 if the walk has ended. */
static long fr_step(__u32 i, struct fr_walk_ctx *ctx)
{
	struct fr_walk *w = &ctx->scratch->walk;
	struct fr_unwind_object *object;
	struct fr_unwind_rule rule = {0};
	__u64 pc = w->is_exact ? w->ip : w->ip - 1;
	__u32 state;
	int known = 1;

	if (w->n >= w->max)
		return fr_end_walk(w, FR_UNWIND_TOO_DEEP);
	if (w->young != FR_YOUNG_NONE) {
		known = fr_find_young_map(w, ctx->shared, pc);
		if (known == 0)
			return fr_end_walk(w, FR_UNWIND_NO_MAP);
	} else if (w->process && !fr_find_map(w, pc)) {
		if (!(pc >= w->change.start && pc < w->change.end))
			return fr_end_walk(w, FR_UNWIND_NO_MAP);
	}
	ctx->scratch->words[w->at++ % FR_BPF_WORDS] = pc;
	w->n++;
	if (w->fallback == FR_UNWIND_COMPAT)
		return fr_end_walk(w, FR_UNWIND_COMPAT);
	if (known < 0)
		return fr_step_frame_pointer(w, FR_UNWIND_CHANGED);
	if (w->young == FR_YOUNG_NONE && !w->process)
		return fr_step_frame_pointer(w, FR_UNWIND_NO_PROCESS);
	if (w->young == FR_YOUNG_NONE && pc >= w->change.start && pc < w->change.end)
		return fr_step_frame_pointer(w, w->change.has_file ? FR_UNWIND_CHANGED : FR_UNWIND_WHOLE);
	object = &ctx->shared->objects[w->object % FR_UNWIND_OBJECTS_MAX];
	state = *(volatile __u32 *)&object->state;
	if (state == FR_UNWIND_READY)
		fr_find_rule(w, object, pc - w->bias, &rule);
	/* The number of the object can stand for another object since the entry got the map. Then the state
	   and the rule are those of the other one. */
	if (w->young != FR_YOUNG_NONE && *(volatile __u32 *)&object->stamp != w->stamp) {
		fr_count_miss(w, ctx->shared);
		return fr_step_frame_pointer(w, FR_UNWIND_CHANGED);
	}
	if (!object->hits || state != FR_UNWIND_READY)
		object->hits++;
	if (w->young != FR_YOUNG_NONE && w->object == FR_OBJECT_FAILED)
		fr_count_miss(w, ctx->shared);
	if (state == FR_UNWIND_BARE)
		return fr_step_frame_pointer(w, FR_UNWIND_WHOLE);
	if (state != FR_UNWIND_READY)
		return fr_step_frame_pointer(w, FR_UNWIND_NO_TABLE);
	if (rule.kind == FR_UNWIND_END)
		return fr_end_walk(w, FR_UNWIND_WHOLE);
	if (rule.kind == FR_UNWIND_SIGNAL)
		return fr_step_signal(w);
	if (rule.kind == FR_UNWIND_NONE)
		return fr_step_without_rule(w);
	return fr_step_rule(w, &rule);
}

static __always_inline void fr_init_registers(struct fr_walk *w, const struct pt_regs___kernel *regs)
{
	w->regs[FR_AX] = regs->ax;
	w->regs[FR_DX] = regs->dx;
	w->regs[FR_CX] = regs->cx;
	w->regs[FR_BX] = regs->bx;
	w->regs[FR_SI] = regs->si;
	w->regs[FR_DI] = regs->di;
	w->regs[FR_BP] = regs->bp;
	w->regs[FR_SP] = regs->sp;
	w->regs[8] = regs->r8;
	w->regs[9] = regs->r9;
	w->regs[10] = regs->r10;
	w->regs[11] = regs->r11;
	w->regs[12] = regs->r12;
	w->regs[13] = regs->r13;
	w->regs[14] = regs->r14;
	w->regs[15] = regs->r15;
	w->ip = regs->ip;
	w->in_memory = w->lost = 0;
	w->is_exact = 1;
}

static __always_inline void fr_count_walk(__u32 result, __u32 frames)
{
	__u32 zero = 0;
	struct fr_unwind_counters *c = bpf_map_lookup_elem(&fr_unwind_counters, &zero);

	if (c && result < _FR_UNWIND_RESULTS) {
		c->walks[result]++;
		c->frames += frames;
	}
}

#define FR_MISS_NS 50000000ull

/* If the walk has missed a map or a table, asks for a round of the recorder, which brings the newest
   side-band to the unwinder. A miss can come again and again, so at most one walk asks in FR_MISS_NS. */
static __always_inline void fr_ask_for_round(struct fr_scratch *s, struct fr_unwind_shared *shared)
{
	const __u32 result = s->walk.result;
	__u64 now;

	if (result != FR_UNWIND_NO_PROCESS && result != FR_UNWIND_CHANGED && result != FR_UNWIND_NO_TABLE &&
		result != FR_UNWIND_NO_MAP)
		return;
	now = bpf_ktime_get_ns();
	if (now - shared->missed_ns < FR_MISS_NS)
		return;
	shared->missed_ns = now;
	s->wants_round = 1;
}

/* Writes the user stack of the current task to S->words from AT on: at most MAX frames, innermost first.
   Returns the number of frames. */
static __always_inline __u32 fr_walk_user(struct fr_scratch *s, __u32 at, __u32 max)
{
	struct task_struct___walk *task = (void *)bpf_get_current_task_btf();
	struct fr_walk_ctx ctx = {s, fr_unwind_shared_get()};
	struct fr_walk *w = &s->walk;
	const struct pt_regs___kernel *regs;

	w->n = 0;
	/* A task that exits has no memory at last. */
	if (!ctx.shared || !task->mm || task->flags & (FR_PF_KTHREAD | FR_PF_IO_WORKER))
		return 0;
	/* In an exec, the registers are of the program that is gone. */
	if (bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve))
		return 0;
	regs = (void *)bpf_task_pt_regs((void *)task);
	/* a thread of the kernel in a process, such as a worker of vhost */
	if (!regs->ip)
		return 0;
	fr_init_registers(w, regs);
	w->at = at;
	w->max = max < FR_BPF_STACK_MAX ? max : FR_BPF_STACK_MAX;
	w->fallback = w->result = FR_UNWIND_WHOLE;
	w->start = w->end = 0;
	w->change.start = w->change.end = 0;
	w->process = 0;
	w->young = FR_YOUNG_NONE;
	if (regs->cs != FR_USER_CS)
		w->fallback = FR_UNWIND_COMPAT;
	else
		fr_find_process(w, ctx.shared, bpf_get_current_pid_tgid() >> 32);
	bpf_loop(FR_BPF_STACK_MAX + 1, fr_step, &ctx, 0);
	fr_count_walk(w->result, w->n);
	fr_ask_for_round(s, ctx.shared);
	return w->n;
}
