// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs for Function= and USDT=. Some programs measure the time from a function's entry to its return, or
 * between two markers, in one thread. The programs *_hit fire each time a thread reaches an instruction.
 * source_function.c loads and attaches the programs that a trigger needs. The unfinished calls of a thread
 * are in the thread's task storage, which the kernel frees with the thread.
 */

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/* The largest number of nested calls that are measured. A call that is nested deeper is not measured. If it
   is too slow, the calls around it are too slow, too. */
#define DEPTH 16

struct call {
	__u64 sp; /* the stack pointer at the entry, which identifies the call */
	__u64 begin_ns;
};

struct calls {
	struct call v[DEPTH];
	__u32 n;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct calls);
} calls_of_task SEC(".maps");

/* The stack pointer after the return, minus the stack pointer at the entry. */
#if defined(__TARGET_ARCH_x86)
#define RETURNED 8
#else
#define RETURNED 0
#endif

static __always_inline struct calls *calls_of_current(__u64 flags)
{
	return bpf_task_storage_get(&calls_of_task, (void *)bpf_get_current_task_btf(), 0, flags);
}

static __always_inline void finish(const char *reason, __u64 begin_ns)
{
	__u64 now = bpf_ktime_get_ns();
	struct flightrec_subject s;

	if (flightrec_below(now - begin_ns, flightrec_threshold, now))
		return;
	flightrec_current(&s);
	flightrec_trigger_for(&s, reason, 0, FLIGHTREC_UNIT_NS, now, now - begin_ns, flightrec_threshold);
}

/* Begins a call. First drops the calls that an exception or longjmp() ended without a return: their stack
   pointers are at or below the stack pointer of the new call. */
SEC("uprobe")
int function_entry(struct pt_regs *ctx)
{
	struct calls *c = calls_of_current(BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 sp = PT_REGS_SP(ctx);

	if (!c)
		return 0;
	for (int i = 0; i < DEPTH && c->n && c->v[(c->n - 1) % DEPTH].sp <= sp; i++)
		c->n--;
	if (c->n < DEPTH) {
		c->v[c->n % DEPTH].sp = sp;
		c->v[c->n % DEPTH].begin_ns = bpf_ktime_get_ns();
		c->n++;
	}
	return 0;
}

SEC("uretprobe")
int function_return(struct pt_regs *ctx)
{
	struct calls *c = calls_of_current(0);
	__u64 sp = PT_REGS_SP(ctx) - RETURNED;

	if (!c)
		return 0;
	for (int i = 0; i < DEPTH && c->n && c->v[(c->n - 1) % DEPTH].sp < sp; i++)
		c->n--;
	if (!c->n || c->v[(c->n - 1) % DEPTH].sp != sp)
		return 0;
	c->n--;
	finish("function latency", c->v[c->n % DEPTH].begin_ns);
	return 0;
}

/* A new begin replaces the previous begin, because it is possible that the thread has left the code between
   the markers without reaching the end marker. */
SEC("uprobe")
int marker_begin(struct pt_regs *ctx)
{
	struct calls *c = calls_of_current(BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!c)
		return 0;
	c->v[0].begin_ns = bpf_ktime_get_ns();
	c->n = 1;
	return 0;
}

SEC("uprobe")
int marker_end(struct pt_regs *ctx)
{
	struct calls *c = calls_of_current(0);

	if (!c || !c->n)
		return 0;
	c->n = 0;
	finish("time between markers", c->v[0].begin_ns);
	return 0;
}

SEC("uprobe")
int function_hit(struct pt_regs *ctx)
{
	flightrec_trigger("function called", 1, 1);
	return 0;
}

SEC("uprobe")
int marker_hit(struct pt_regs *ctx)
{
	flightrec_trigger("marker passed", 1, 1);
	return 0;
}
