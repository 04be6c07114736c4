// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event offcpu: makes a sample when a task runs again after a time off the CPU, and a sample of the waker
 * when it wakes a task that has slept long. docs/design/13 explains how.
 *
 *   sched_switch, previous task   notes the time in the table of sleeps
 *   sched_waking                  notes the waker; if the sleep is long: sample flightrec:waker
 *   sched_switch, next task       if it was off the CPU for long: begins the sample flightrec:offcpu
 *   irq_work_entry                adds the user stack of this task, and puts the sample into the ring
 *   iterator of tasks             for a dump: writes a record of each wait that has not ended
 *
 * In sched_switch, the memory of the next task cannot be read yet. So the program raises an interrupt, which
 * the CPU takes as soon as the switch is complete: before the task runs any code of its own.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stddef.h>
#include "record.bpf.h"
#include "sleep.h"

char LICENSE[] SEC("license") = "GPL";

#define PROBES 8	 /* slots in which a task can be */
#define STEP 2477u	 /* between these slots; odd */
#define WAKE_BYTES 4096u /* try_to_wake_up() is shorter */
#define CPUS 8192u
#define TOGETHER_NS 1000000u /* the largest time between two programs for one switch */
#define EARLY_NS 100000u     /* the largest time from a waking to the sched_switch that it comes before */

/* Bits of task_struct.__state, and of the preempt count. */
#define SLEEPS_INTERRUPTIBLE 0x1
#define SLEEPS_UNINTERRUPTIBLE 0x2
#define STOPPED 0x4
#define TRACED 0x8
#define PARKED 0x40
#define DEAD 0x80
#define NOLOAD 0x400
#define SLEEPS_LIKE_D 0x9002 /* UNINTERRUPTIBLE, waits for a lock of PREEMPT_RT, FROZEN */
#define PREEMPT_NMI 0xf00000
#define PREEMPT_HARDIRQ 0xf0000
#define PREEMPT_SOFTIRQ 0x100

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct rq;
struct cfs_rq {
	struct rq *rq;
};
struct sched_entity {
	struct cfs_rq *cfs_rq;
};
struct thread_info {
	__u32 cpu;
};
struct task_struct {
	struct thread_info thread_info;
	int pid, tgid;
	unsigned int flags;
	char comm[FR_SLEEP_COMM];
	struct sched_entity se;
};
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
#pragma clang attribute pop

/* Set before the load. */
const volatile __u32 sleeps_mask = 0; /* the number of slots, minus 1 */
const volatile __u32 own_tgid = 0;    /* the recorder */
const volatile __u32 by_pid = 0, by_cgroup = 0;
const volatile __u32 slot_of_event = 0; /* of struct fr_switch, for both events */
/* From the run queue of a CPU to its preempt count. 0: not known. */
const volatile __s64 preempt_count_offset = 0;

/* Changed while the programs run. */
volatile __u32 on = 0;
volatile __u64 threshold_ns = 0;
__u64 untracked = 0;		      /* sleeps for which the table had no slot */
__u32 indexes[FR_SLEEP_EVENTS][CPUS]; /* of struct fr_bpf_event, plus 1; 0: the CPU is not recorded */

extern const void try_to_wake_up __ksym __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space sets a power of two */
	__type(key, __u32);
	__type(value, struct fr_sleep);
} sleeps SEC(".maps");

/* The processes that are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u32);
} pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} cgroups SEC(".maps");

/* A ring that stays empty. To drain it is the way to raise an interrupt from a BPF program. */
struct nothing_map {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 4096);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* user space sets the number of CPUs */
	__type(key, __u32);
	__array(values, struct nothing_map);
} interrupts SEC(".maps");

/* A sample that waits for its user stack. */
struct begun {
	struct fr_scratch scratch;
	__u32 tid; /* 0: there is none */
	__u32 index, at;
	struct fr_sleep_raw raw;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct begun);
} begun_samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fr_scratch);
} waker_scratch SEC(".maps");
/* The iterator can be interrupted by the other programs, so it has a memory of its own. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fr_scratch);
} waiting_scratch SEC(".maps");

static __always_inline int is_on(void)
{
	return on && !fr_is_off(slot_of_event);
}

/* Returns whether the programs have followed the task since OUT_NS. They have not if the event was switched
   on later. */
static __always_inline int is_followed(__u64 out_ns)
{
	__u32 key = slot_of_event;
	const struct fr_switch *s = bpf_map_lookup_elem(&fr_switches, &key);

	return !s || out_ns >= s->since_ns;
}

static __always_inline struct fr_sleep *slot(__u32 tid, __u32 i)
{
	const __u32 at = (tid + i * STEP) & sleeps_mask;

	return bpf_map_lookup_elem(&sleeps, &at);
}

/* Returns the slot of TID; or NULL. */
static __always_inline struct fr_sleep *find_sleep(__u32 tid)
{
	for (__u32 i = 0; i < PROBES; i++) {
		struct fr_sleep *s = slot(tid, i);

		if (s && s->tid == tid)
			return s;
	}
	return 0;
}

/* Gives TID a slot. Only the CPU on which TID stops running does this, so TID gets one slot. */
static __always_inline struct fr_sleep *add_sleep(__u32 tid)
{
	for (__u32 i = 0; i < PROBES; i++) {
		struct fr_sleep *s = slot(tid, i);

		if (!s || s->tid || __sync_val_compare_and_swap(&s->tid, 0, tid))
			continue;
		s->out_ns = s->in_ns = s->waking_ns = 0;
		s->context = FR_WAKER_UNKNOWN;
		s->waker_pid = s->waker_tid = 0;
		s->waker_comm[0] = 0;
		return s;
	}
	__sync_fetch_and_add(&untracked, 1);
	return 0;
}

/* Returns whether the current task is to be recorded. */
static __always_inline int is_wanted(__u32 tgid)
{
	if (tgid == own_tgid)
		return 0;
	if (by_pid && !bpf_map_lookup_elem(&pids, &tgid))
		return 0;
	return !by_cgroup || bpf_current_task_under_cgroup(&cgroups, 0) == 1;
}

/*
 * During a reload, the programs of two captures share the table. The first program that sees a switch or a
 * waking sets its time and the second one uses this time, so that both make equal samples. The two run
 * directly one after the other. If more time has passed, the programs have missed a switch: then out_ns is
 * too old.
 */
static __always_inline void leave(struct task_struct *prev, __u32 preempted, __u32 state, __u64 now)
{
	struct fr_sleep *s = find_sleep(prev->pid);

	if (state & DEAD && !preempted) {
		if (s)
			s->tid = 0;
		return;
	}
	/* Kernel threads that wait for work sleep in the state NOLOAD. */
	if (!is_wanted(prev->tgid) || (!preempted && state & NOLOAD)) {
		if (s)
			s->in_ns = s->out_ns;
		return;
	}
	if (!s)
		s = add_sleep(prev->pid);
	if (!s || (s->in_ns < s->out_ns && now - s->out_ns < TOGETHER_NS))
		return;
	s->state = state;
	s->preempted = preempted;
	s->out_ns = now;
}

static __always_inline __u32 current_context(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct cfs_rq *queue = task->se.cfs_rq;
	__u64 rq = 0;
	__u32 count;

	/* The run queue and the preempt count are variables of the same CPU, at a fixed distance. */
	if (!preempt_count_offset || bpf_probe_read_kernel(&rq, sizeof(rq), &queue->rq) ||
		bpf_probe_read_kernel(&count, sizeof(count), (void *)(rq + preempt_count_offset)))
		return FR_WAKER_UNKNOWN;
	if (count & PREEMPT_NMI)
		return FR_WAKER_NMI;
	if (count & PREEMPT_HARDIRQ)
		return FR_WAKER_HARDIRQ;
	return count & PREEMPT_SOFTIRQ ? FR_WAKER_SOFTIRQ : FR_WAKER_TASK;
}

static __always_inline __u64 index_of(__u32 event, __u32 cpu)
{
	return indexes[event][cpu & (CPUS - 1)];
}

/* Ends the call chain, which begins at words[7] and ends before words[AT], and appends WORDS words of raw
   data. */
static __always_inline void end_record(struct fr_record *r, __u32 at, const void *raw, __u32 words)
{
	__u64 *to = r->scratch->words;

	if (r->event->flags & FR_BPF_CALLCHAIN)
		to[7] = at - 8;
	to[2] = to[9]; /* the innermost function of the kernel stack */
	to[4] = bpf_ktime_get_ns();
	FR_OPAQUE(at);
	for (__u32 i = 0; i < words; i++)
		to[(at + i) % FR_BPF_WORDS] = ((const __u64 *)raw)[i];
	r->words = at + words;
}

static __always_inline void finish_record(struct fr_record *r, __u32 at, const void *raw, __u32 words)
{
	end_record(r, at, raw, words);
	fr_record_submit(r);
}

/* Adds the user stack at words[AT]. Returns the end of the call chain. */
static __always_inline __u32 add_user_stack(const struct fr_record *r, __u32 at)
{
	__u32 n = 0;

	FR_OPAQUE(at);
	if (r->event->flags & FR_BPF_USER_STACK)
		n = fr_walk_user(r->scratch, at + 1, r->event->max_stack);
	if (!n)
		return at;
	r->scratch->words[at % FR_BPF_WORDS] = PERF_CONTEXT_USER;
	return at + n + 1;
}

/* Begins the call chain with the N bytes of kernel stack at words[9]. Returns the end of the call chain. */
static __always_inline __u32 end_kernel_stack(const struct fr_record *r, long n)
{
	n = n < 0 ? 0 : (n & 1023) / 8;
	if (n > r->event->max_stack)
		n = r->event->max_stack;
	if (!n)
		r->scratch->words[9] = 0;
	r->scratch->words[8] = PERF_CONTEXT_KERNEL;
	if (!(r->event->flags & FR_BPF_CALLCHAIN))
		return 7;
	return n ? 9 + n : 8;
}

/* Adds the user stack if WALKS is not 0. */
static __always_inline void finish_sleep(struct begun *b, int walks)
{
	struct fr_record r = {.scratch = &b->scratch, .index = b->index % FR_BPF_EVENTS_MAX};
	__u32 zero = 0, at = b->at;

	b->tid = 0;
	r.shared = bpf_map_lookup_elem(&fr_bpf_shared, &zero);
	if (!r.shared)
		return;
	r.event = &r.shared->events[r.index];
	if (walks)
		at = add_user_stack(&r, at);
	finish_record(&r, at, &b->raw, sizeof(b->raw) / 8);
}

/* The task of B has left this CPU, so its stack cannot be walked any more. */
static __always_inline void finish_too_late(struct begun *b)
{
	fr_count_walk(FR_UNWIND_TOO_LATE, 0);
	finish_sleep(b, 0);
}

static __always_inline char state_letter(const struct fr_sleep *s)
{
	if (s->preempted || !(s->state & 0xffff))
		return 'R';
	if (s->state & SLEEPS_INTERRUPTIBLE)
		return 'S';
	if (s->state & SLEEPS_LIKE_D)
		return 'D';
	return s->state & STOPPED ? 'T' : s->state & TRACED ? 't' : s->state & PARKED ? 'P' : '?';
}

static __always_inline void fill_sleep(struct fr_sleep_raw *raw, const struct fr_sleep *s)
{
	const __u64 out_ns = s->out_ns, duration = s->in_ns - out_ns, waking_ns = s->waking_ns;

	__builtin_memset(raw, 0, sizeof(*raw));
	raw->size = sizeof(*raw) - sizeof(raw->size);
	raw->common_type = FR_SLEEP_TRACEPOINT;
	raw->common_pid = s->tid;
	raw->duration = raw->runqueue = duration;
	raw->state[0] = state_letter(s);
	raw->state[1] = s->preempted ? '+' : 0;
	if (raw->state[0] == 'R')
		return;
	/* A waker can come while the task is about to leave the CPU, with interrupts disabled. */
	if (waking_ns < out_ns && (!s->woken_early || waking_ns + EARLY_NS < out_ns)) {
		raw->waker_context = FR_WAKER_UNKNOWN;
		raw->blocked = duration; /* most of a sleep is before the waking, which was not seen */
		raw->runqueue = 0;
		return;
	}
	if (waking_ns > out_ns && waking_ns - out_ns <= duration) {
		raw->blocked = waking_ns - out_ns;
		raw->runqueue = duration - raw->blocked;
	}
	raw->waker_context = s->context;
	raw->waker_pid = s->waker_pid;
	raw->waker_tid = s->waker_tid;
	__builtin_memcpy(raw->waker_comm, s->waker_comm, sizeof(raw->waker_comm));
}

static long no_record(void *dynptr, void *ctx)
{
	return 1;
}

static __always_inline void raise_interrupt(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&interrupts, &cpu);

	if (ring)
		bpf_user_ringbuf_drain(ring, no_record, 0, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void begin_sleep_sample(struct task_struct *next, const struct fr_sleep *s)
{
	const __u64 at = index_of(FR_SLEEP_EVENT, bpf_get_smp_processor_id());
	struct fr_record r;
	struct begun *b;
	__u32 zero = 0;
	long n = 0;

	b = bpf_map_lookup_elem(&begun_samples, &zero);
	if (!at || !b)
		return;
	if (b->tid)
		finish_too_late(b); /* its interrupt has not come */
	if (!fr_record_begin(&r, &begun_samples, at - 1, 0, PERF_RECORD_MISC_KERNEL, s->in_ns - s->out_ns))
		return;
	r.scratch->words[3] = (__u32)next->tgid | (__u64)(__u32)next->pid << 32;
	if (r.event->flags & FR_BPF_KERNEL_STACK)
		n = bpf_get_task_stack(next, &r.scratch->words[9], FR_BPF_STACK_MAX * sizeof(__u64), 0);
	b->index = r.index;
	b->at = end_kernel_stack(&r, n);
	fill_sleep(&b->raw, s);
	if (next->flags & (FR_PF_KTHREAD | FR_PF_IO_WORKER) || !(r.event->flags & FR_BPF_USER_STACK)) {
		finish_sleep(b, 0);
		return;
	}
	b->tid = next->pid;
	raise_interrupt();
}

static __always_inline void enter(struct task_struct *next, __u64 now)
{
	struct fr_sleep *s = find_sleep(next->pid);

	if (!s)
		return;
	if (s->in_ns < s->out_ns)
		s->in_ns = now;
	else if (now - s->in_ns >= TOGETHER_NS)
		return;
	if (s->in_ns - s->out_ns >= threshold_ns && is_followed(s->out_ns))
		begin_sleep_sample(next, s);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, _Bool preempt, struct task_struct *prev, struct task_struct *next,
	unsigned int prev_state)
{
	__u64 now;

	if (!is_on())
		return 0;
	now = bpf_ktime_get_ns();
	if (prev->pid)
		leave(prev, preempt, prev_state, now);
	if (next->pid)
		enter(next, now);
	return 0;
}

SEC("tp_btf/irq_work_entry")
int BPF_PROG(irq_work_entry)
{
	__u32 zero = 0;
	struct begun *b = bpf_map_lookup_elem(&begun_samples, &zero);

	if (!b || !b->tid)
		return 0;
	if (b->tid == (__u32)bpf_get_current_pid_tgid())
		finish_sleep(b, 1);
	else
		finish_too_late(b);
	return 0;
}

/* How many frames of a kernel stack belong to BPF and to the tracepoint. The program finds this out itself.
   The number changes when another recorder adds its program to the tracepoint. */
static volatile __u32 skipped = 0;

/* Reads the kernel stack from try_to_wake_up() on. */
static __always_inline long read_waker_stack(void *ctx, __u64 *to)
{
	const __u64 begin = (__u64)&try_to_wake_up;
	const __u32 skip = skipped & 15;
	long n = bpf_get_stack(ctx, to, FR_BPF_STACK_MAX * sizeof(__u64), skip);

	if (!begin || to[0] - begin < WAKE_BYTES)
		return n;
	skipped = 0;
	if (skip)
		n = bpf_get_stack(ctx, to, FR_BPF_STACK_MAX * sizeof(__u64), 0);
	for (__u32 i = 1; i < 12 && i * 8 < n; i++)
		if (to[i] - begin < WAKE_BYTES) {
			skipped = i;
			return bpf_get_stack(ctx, to, FR_BPF_STACK_MAX * sizeof(__u64), i);
		}
	return n;
}

static __always_inline void make_waker_sample(
	void *ctx, struct task_struct *woken, __u32 context, __u64 slept)
{
	const __u64 index_plus_1 = index_of(FR_WAKER_EVENT, bpf_get_smp_processor_id());
	struct fr_waker_raw raw = {.size = sizeof(raw) - sizeof(raw.size),
		.common_type = FR_WAKER_TRACEPOINT,
		.common_pid = (__u32)bpf_get_current_pid_tgid(),
		.context = context,
		.slept = slept,
		.woken_pid = woken->tgid,
		.woken_tid = woken->pid};
	struct fr_record r;
	long n = 0;
	__u32 at;

	if (!index_plus_1 ||
		!fr_record_begin(&r, &waker_scratch, index_plus_1 - 1, 0, PERF_RECORD_MISC_KERNEL, slept))
		return;
	bpf_probe_read_kernel(raw.woken_comm, sizeof(raw.woken_comm), woken->comm);
	if (r.event->flags & FR_BPF_KERNEL_STACK)
		n = read_waker_stack(ctx, &r.scratch->words[9]);
	at = end_kernel_stack(&r, n);
	/* The user code that was interrupted did not wake the task. */
	if (context == FR_WAKER_TASK || context == FR_WAKER_UNKNOWN)
		at = add_user_stack(&r, at);
	finish_record(&r, at, &raw, sizeof(raw) / 8);
}

static __always_inline void note_waker(struct fr_sleep *s)
{
	const __u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();

	s->woken_early = s->in_ns >= s->out_ns;
	s->waking_ns = now;
	s->waker_pid = id >> 32;
	s->waker_tid = id;
	s->context = FR_WAKER_UNKNOWN;
	s->waker_comm[0] = 0;
	/* Most sleeps are short. The rest costs more than all else, so it is only noted for a sleep that is
	   at least a small part of the threshold. */
	if ((__s64)(now - s->out_ns) < (__s64)(threshold_ns / 16))
		return;
	s->context = current_context();
	bpf_get_current_comm(s->waker_comm, sizeof(s->waker_comm));
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *woken)
{
	struct fr_sleep *s;
	__s64 slept;

	if (!is_on())
		return 0;
	s = find_sleep(woken->pid);
	if (!s)
		return 0;
	/* While the task runs, each waking can be the one that ends its next sleep, before sched_switch. */
	if (s->waking_ns <= s->out_ns || s->in_ns >= s->out_ns)
		note_waker(s);
	/* Negative if the task leaves another CPU at this moment. */
	slept = (__s64)(s->waking_ns - s->out_ns);
	if (s->in_ns < s->out_ns && s->state && !s->preempted && slept >= (__s64)threshold_ns &&
		s->waker_pid != own_tgid && is_followed(s->out_ns))
		make_waker_sample(ctx, woken, s->context, (__u64)slept);
	return 0;
}

/* Writes a record of the wait of TASK, of which S is a copy. The record is a sample of the event offcpu; the
   dump makes one of flightrec:waiting of it. */
static __always_inline void write_wait(
	struct seq_file *seq, struct task_struct *task, const struct fr_sleep *s)
{
	const __u32 cpu = task->thread_info.cpu;
	const __u64 index_plus_1 = index_of(FR_SLEEP_EVENT, cpu);
	struct fr_sleep_raw raw;
	struct fr_record r;
	__u32 size;
	long n = 0;

	if (!index_plus_1 || !fr_record_begin(&r, &waiting_scratch, index_plus_1 - 1, 0,
				     PERF_RECORD_MISC_KERNEL, s->in_ns - s->out_ns))
		return;
	r.scratch->words[3] = (__u32)task->tgid | (__u64)(__u32)task->pid << 32;
	r.scratch->words[5] = cpu;
	if (r.event->flags & FR_BPF_KERNEL_STACK)
		n = bpf_get_task_stack(task, &r.scratch->words[9], FR_BPF_STACK_MAX * sizeof(__u64), 0);
	fill_sleep(&raw, s);
	if (raw.state[0] != 'R' && raw.blocked == raw.duration && raw.waker_context == FR_WAKER_UNKNOWN)
		raw.waker_context = FR_WAKER_NONE; /* nobody has woken it */
	end_record(&r, end_kernel_stack(&r, n), &raw, sizeof(raw) / 8);
	r.scratch->words[4] = s->in_ns;
	size = r.words % FR_BPF_WORDS * 8;
	r.scratch->words[0] |= (__u64)size << 48;
	FR_OPAQUE(size);
	size &= FR_BPF_WORDS * 8 - 8;
	bpf_seq_write(seq, r.scratch->words, size);
}

/* User stacks cannot be read here: to read the memory of another task can wait, without a limit. */
SEC("iter/task")
int waiting(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct fr_sleep *s, copy;

	if (!task || !is_on() || !(s = find_sleep(task->pid)))
		return 0;
	copy = *s;
	if (copy.in_ns >= copy.out_ns)
		return 0;
	copy.in_ns = bpf_ktime_get_ns();
	if (copy.in_ns - copy.out_ns >= threshold_ns && is_followed(copy.out_ns))
		write_wait(ctx->meta->seq, task, &copy);
	return 0;
}

/* The following programs are only loaded if chosen processes are recorded. */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 pid = child->tgid, value = 0, from = parent->tgid;

	if (pid == from || !bpf_map_lookup_elem(&pids, &from))
		return 0;
	if (bpf_map_update_elem(&pids, &pid, &value, BPF_ANY))
		__sync_fetch_and_add(&untracked, 1);
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(sched_process_free, struct task_struct *task)
{
	__u32 pid = task->pid;

	if (task->tgid == task->pid)
		bpf_map_delete_elem(&pids, &pid);
	return 0;
}

/* The recording of a command begins at its exec. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task)
{
	__u32 pid = task->tgid;

	if (bpf_map_lookup_elem(&pids, &pid))
		on = 1;
	return 0;
}
