// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Owns the maps of unwind_maps.bpf.h, and keeps them right for the moments until user space has got the
 * side-band: notes which processes have changed their executable maps, gives a new process the maps of its
 * parent, and keeps the maps of young processes (young.bpf.h).
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "young.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define FR_EVERYWHERE (~0ULL)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags;
	struct file *vm_file;
};
struct task_struct {
	int pid, tgid;
	struct mm_struct___young *mm;
};
struct pt_regs___exec {
	unsigned long ip;
};
#pragma clang attribute pop

struct linux_binprm;

static __always_inline struct fr_unwind_shared *get_shared(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&fr_unwind_shared, &zero);
}

static __always_inline struct fr_unwind_change *change_of(struct fr_unwind_shared *shared, __u32 pid)
{
	return &shared->changes[fr_unwind_hash(pid) % FR_UNWIND_CHANGES];
}

/*
 * Notes a change of PID's maps. The time is stored last, by an atomic operation, so a walk on another CPU
 * never finds the new time with an old range. Two processes with one hash that change their maps in the same
 * nanoseconds can lose one of both ranges. This is rare, and costs at most some wrong frames for a moment.
 */
static __always_inline void note(
	struct fr_unwind_shared *shared, __u32 pid, __u64 start, __u64 end, int has_file)
{
	struct fr_unwind_change *c = change_of(shared, pid);

	if (c->ns < *(volatile __u64 *)&shared->synced_ns) {
		c->start = start;
		c->end = end;
		c->has_file = has_file;
	} else {
		if (c->start > start)
			c->start = start;
		if (c->end < end)
			c->end = end;
		if (has_file)
			c->has_file = 1;
	}
	__sync_lock_test_and_set(&c->ns, bpf_ktime_get_ns());
}

/* Runs after the kernel has made the record of the map. So the note is not older than the record: when
   synced_ns is newer than the note, user space has the record, too. */
SEC("fexit/perf_event_mmap")
int BPF_PROG(note_map, struct vm_area_struct *vma)
{
	const __u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct fr_unwind_shared *shared;
	__u32 young;

	if (!(vma->vm_flags & FR_VM_EXEC))
		return 0;
	shared = get_shared();
	if (!shared)
		return 0;
	note(shared, pid, vma->vm_start, vma->vm_end, vma->vm_file != NULL);
	young = fr_young_find(shared, pid);
	if (young != FR_YOUNG_NONE)
		fr_young_add(shared, young, pid, (const void *)vma);
	return 0;
}

/* The slot of an exec still has the maps of the program before it. The kernel has mapped the new program, its
   dynamic linker, which runs first, and the vdso. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(note_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct fr_unwind_shared *shared = get_shared();
	const struct pt_regs___exec *regs = (const void *)bpf_task_pt_regs(task);
	const __u64 addresses[] = {regs->ip, task->mm->start_code, (__u64)task->mm->context.vdso};
	__u32 young;

	if (!shared)
		return 0;
	note(shared, task->tgid, 0, FR_EVERYWHERE, 1);
	young = fr_young_begin(shared, task->tgid);
	for (int i = 0; young != FR_YOUNG_NONE && i < 3; i++)
		if (addresses[i])
			fr_young_ask(shared, task, task->tgid, young, addresses[i]);
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(free_young, struct task_struct *task)
{
	struct fr_unwind_shared *shared = get_shared();

	if (shared && task->pid == task->tgid)
		fr_young_free(shared, task->tgid);
	return 0;
}

static long answer_file(
	struct task_struct *task, struct vm_area_struct *vma, struct fr_unwind_shared **shared)
{
	fr_read_file((const void *)vma, &(*shared)->asked);
	return 0;
}

/* User space runs this program: it stores the file that the current process has mapped at the address
   ARGS[0]. fstat() gives other numbers for files of some file systems, such as btrfs and overlayfs. */
SEC("raw_tp")
int ask_file(struct bpf_raw_tracepoint_args *ctx)
{
	struct fr_unwind_shared *shared = get_shared();

	if (!shared)
		return 0;
	__builtin_memset(&shared->asked, 0, sizeof(shared->asked));
	bpf_find_vma(bpf_get_current_task_btf(), ctx->args[0], answer_file, &shared, 0);
	return 0;
}

static __always_inline __u64 *slot_at(struct fr_unwind_shared *shared, __u32 hash, __u32 probe)
{
	return (__u64 *)&shared->slots[(hash + probe) % FR_UNWIND_SLOTS];
}

static __always_inline fr_unwind_at find_process(struct fr_unwind_shared *shared, __u32 pid)
{
	const __u32 hash = fr_unwind_hash(pid);

#pragma unroll
	for (__u32 i = 0; i < FR_UNWIND_PROBES; i++) {
		const __u64 slot = *(volatile __u64 *)slot_at(shared, hash, i);

		if ((__u32)slot == pid)
			return slot >> 32;
	}
	return 0;
}

/*
 * Gives the new process PID the maps AT (0: none) until user space gets the record of the fork. If PID
 * already has a slot, that slot belongs to an earlier process with this pid, which is dead. User space writes
 * slots, too, so each write compares. If a write fails, user space has just written, and the process has no
 * maps until the record of the fork.
 */
static __always_inline void set_process(struct fr_unwind_shared *shared, __u32 pid, fr_unwind_at at)
{
	const __u64 mine = at ? (__u64)at << 32 | pid : 0;
	const __u32 hash = fr_unwind_hash(pid);
	__u32 probe = FR_UNWIND_PROBES;
	__u64 old = 0;

#pragma unroll
	for (__u32 i = 0; i < FR_UNWIND_PROBES; i++) {
		const __u64 slot = *(volatile __u64 *)slot_at(shared, hash, i);

		if ((__u32)slot == pid) {
			probe = i;
			old = slot;
			break;
		}
		if (!slot && probe == FR_UNWIND_PROBES)
			probe = i;
	}
	if (probe < FR_UNWIND_PROBES)
		__sync_val_compare_and_swap(slot_at(shared, hash, probe), old, mine);
}

/* Runs before the new process does. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(copy_maps, struct task_struct *parent, struct task_struct *child)
{
	const __u32 pid = child->tgid, ppid = parent->tgid;
	struct fr_unwind_shared *shared;
	struct fr_unwind_change *c;
	__u64 synced_ns;

	if (pid == ppid || !child->mm)
		return 0;
	shared = get_shared();
	if (!shared)
		return 0;
	fr_young_free(shared, pid); /* of an earlier process */
	/* The order of these reads is important: a map that is missing in the parent's slot is in the note,
	   whose time is not older than this value of synced_ns. */
	synced_ns = __sync_fetch_and_add(&shared->synced_ns, 0);
	set_process(shared, pid, find_process(shared, ppid));
	c = change_of(shared, ppid);
	if (c->ns && c->ns >= synced_ns)
		note(shared, pid, c->start, c->end, c->has_file != 0);
	return 0;
}
