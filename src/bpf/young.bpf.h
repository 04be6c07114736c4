/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The maps of young processes (struct fr_unwind_young), which BPF programs find by themselves. All functions
 * can run in an interrupt: if an entry is being changed, they do without it.
 *
 * Include <bpf/bpf_core_read.h> first.
 */

#include "unwind_maps.bpf.h"

struct task_struct;

/* Objects 0 and 1 of src/unwind/objects.h: memory without a file, and a file that is not known. */
#define FR_OBJECT_BARE 0
#define FR_OBJECT_FAILED 1
#define FR_VM_EXEC 0x4
#define FR_YOUNG_NONE (~0u)
/* An entry begins again after this time, because some kernels do not tell changes of maps. */
#define FR_YOUNG_MAX_NS 2000000000ull

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block___young {
	__u32 s_dev;
};
struct inode___young {
	unsigned long i_ino;
	__u32 i_generation;
	__s64 i_size;
	struct super_block___young *i_sb;
};
/* The time of change: until 6.5, until 6.10, and since then. */
struct timespec64___young {
	__s64 tv_sec;
	long tv_nsec;
};
struct inode___6_1 {
	struct timespec64___young i_ctime;
};
struct inode___6_6 {
	struct timespec64___young __i_ctime;
};
struct inode___6_11 {
	__s64 i_ctime_sec;
	__u32 i_ctime_nsec;
};
struct file___young {
	struct inode___young *f_inode;
};
typedef struct {
	void *vdso;
} fr_mm_context;
struct mm_struct___young {
	unsigned long start_code;
	fr_mm_context context;
};
struct vm_area_struct___young {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct file___young *vm_file;
	struct mm_struct___young *vm_mm;
};
#pragma clang attribute pop
#define FR_CTIME_NSEC_MASK 0x7fffffff /* since 6.13, the highest bit is a flag */

static __always_inline void fr_read_ctime(const struct inode___young *inode, struct fr_unwind_file *ret)
{
	const struct inode___6_11 *v6_11 = (const void *)inode;
	const struct inode___6_6 *v6_6 = (const void *)inode;
	const struct inode___6_1 *v6_1 = (const void *)inode;

	if (bpf_core_field_exists(v6_11->i_ctime_sec)) {
		ret->ctime_s = v6_11->i_ctime_sec;
		ret->ctime_ns = v6_11->i_ctime_nsec & FR_CTIME_NSEC_MASK;
	} else if (bpf_core_field_exists(v6_6->__i_ctime)) {
		ret->ctime_s = v6_6->__i_ctime.tv_sec;
		ret->ctime_ns = v6_6->__i_ctime.tv_nsec;
	} else {
		ret->ctime_s = v6_1->i_ctime.tv_sec;
		ret->ctime_ns = v6_1->i_ctime.tv_nsec;
	}
}

/* Sets RET to the file of VMA. Returns 0 if it has none. */
static __always_inline int fr_read_file(const struct vm_area_struct___young *vma, struct fr_unwind_file *ret)
{
	const struct file___young *file = vma->vm_file;
	const struct inode___young *inode;

	__builtin_memset(ret, 0, sizeof(*ret));
	if (!file)
		return 0;
	inode = file->f_inode;
	ret->ino = inode->i_ino;
	ret->size = inode->i_size;
	ret->generation = inode->i_generation;
	ret->dev = inode->i_sb->s_dev;
	fr_read_ctime(inode, ret);
	return 1;
}

static __always_inline void fr_read_map(const struct vm_area_struct___young *vma, struct fr_unwind_map *ret)
{
	const int is_vdso = (unsigned long)vma->vm_mm->context.vdso == vma->vm_start;
	const struct fr_unwind_file_object *found;
	struct fr_unwind_file file;

	ret->start = vma->vm_start;
	ret->end = vma->vm_end;
	ret->bias = 0;
	ret->object = FR_OBJECT_BARE;
	ret->stamp = 0;
	if (!fr_read_file(vma, &file) && !is_vdso)
		return;
	ret->bias = is_vdso ? ret->start : ret->start - (vma->vm_pgoff << 12);
	found = bpf_map_lookup_elem(&fr_unwind_files, &file);
	ret->object = found ? found->object : FR_OBJECT_FAILED;
	ret->stamp = found ? found->stamp : 0;
}

static __always_inline volatile __u64 *fr_young_owner(struct fr_unwind_shared *shared, __u32 i)
{
	return &shared->young_owners[i % FR_UNWIND_YOUNG];
}

static __always_inline struct fr_unwind_young *fr_young_at(struct fr_unwind_shared *shared, __u32 i)
{
	return &shared->young[i % FR_UNWIND_YOUNG];
}

static __always_inline struct fr_unwind_shared *fr_young_shared(void)
{
	__u32 zero = 0;

	return fr_has_unwind ? bpf_map_lookup_elem(&fr_unwind_shared, &zero) : NULL;
}

/*
 * The next functions are global, so that the verifier checks each of them only once, and not again for each
 * way through its caller. Linux 6.1 gives up otherwise.
 */

/* Returns the entry whose owner has the pid PID (0: a free one) among those in which WHO can have its entry;
   or FR_YOUNG_NONE. */
__attribute__((noinline)) __u32 fr_young_search(__u32 who, __u32 pid)
{
	const __u32 set = fr_unwind_young_set(who);
	struct fr_unwind_shared *shared = fr_young_shared();

	if (!shared)
		return FR_YOUNG_NONE;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < FR_UNWIND_YOUNG_WAYS; i++)
		if ((__u32)*fr_young_owner(shared, set + i) == pid)
			return set + i;
	return FR_YOUNG_NONE;
}

/* Returns an entry that WHO can have and that was not changed since SYNCED_NS, or FR_YOUNG_NONE. */
__attribute__((noinline)) __u32 fr_young_search_old(__u32 who, __u64 synced_ns)
{
	const __u32 set = fr_unwind_young_set(who);
	struct fr_unwind_shared *shared = fr_young_shared();

	if (!shared)
		return FR_YOUNG_NONE;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < FR_UNWIND_YOUNG_WAYS; i++)
		if (fr_young_at(shared, set + i)->ns < synced_ns)
			return set + i;
	return FR_YOUNG_NONE;
}

/* Returns the entry of PID, or FR_YOUNG_NONE. */
static __always_inline __u32 fr_young_find(struct fr_unwind_shared *shared, __u32 pid)
{
	return fr_young_search(pid, pid);
}

/* Locks the entry I, whose owner was OWNER. Returns 0 if it has another owner now. */
static __always_inline int fr_young_lock(struct fr_unwind_shared *shared, __u32 i, __u64 owner)
{
	const __u64 busy = ((owner >> 32) + 1) << 32 | FR_UNWIND_BUSY;

	return (__u32)owner != FR_UNWIND_BUSY &&
	       __sync_val_compare_and_swap((__u64 *)fr_young_owner(shared, i), owner, busy) == owner;
}

/* PID 0: the entry becomes free. */
static __always_inline void fr_young_unlock(struct fr_unwind_shared *shared, __u32 i, __u32 pid)
{
	const __u64 owner = *fr_young_owner(shared, i);

	__sync_lock_test_and_set((__u64 *)fr_young_owner(shared, i), (owner >> 32) << 32 | pid);
}

static __always_inline void fr_young_free(struct fr_unwind_shared *shared, __u32 pid)
{
	const __u32 i = fr_young_find(shared, pid);
	__u64 owner;

	if (i == FR_YOUNG_NONE)
		return;
	owner = *fr_young_owner(shared, i);
	if ((__u32)owner == pid && fr_young_lock(shared, i, owner))
		fr_young_unlock(shared, i, 0);
}

/* Gives PID an empty entry: its own, a free one, or one that is not used any more. */
static __always_inline __u32 fr_young_begin(struct fr_unwind_shared *shared, __u32 pid)
{
	const __u64 synced_ns = *(volatile __u64 *)&shared->synced_ns;
	__u32 found = fr_young_search(pid, pid);
	struct fr_unwind_young *young;

	if (found == FR_YOUNG_NONE)
		found = fr_young_search(pid, 0);
	if (found == FR_YOUNG_NONE)
		found = fr_young_search_old(pid, synced_ns);
	if (found == FR_YOUNG_NONE || !fr_young_lock(shared, found, *fr_young_owner(shared, found)))
		return FR_YOUNG_NONE;
	young = fr_young_at(shared, found);
	young->n = 0;
	young->begin_ns = young->ns = bpf_ktime_get_ns();
	fr_young_unlock(shared, found, pid);
	return found;
}

/* Adds VMA to the entry I of PID. The kernel's lock of the maps is held, so the map is not older than any in
   the entry. Without room, the entry begins again. */
static __always_inline void fr_young_add(
	struct fr_unwind_shared *shared, __u32 i, __u32 pid, const struct vm_area_struct___young *vma)
{
	const __u64 owner = *fr_young_owner(shared, i);
	struct fr_unwind_young *young = fr_young_at(shared, i);

	if ((__u32)owner != pid || !fr_young_lock(shared, i, owner))
		return;
	if (young->n >= FR_UNWIND_YOUNG_MAPS)
		young->n = 0;
	fr_read_map(vma, &young->maps[young->n % FR_UNWIND_YOUNG_MAPS]);
	young->n++;
	young->ns = bpf_ktime_get_ns();
	fr_young_unlock(shared, i, pid);
}

/* Finds the newest map with the address PC in the entry I of PID. Returns 1 and sets RET; 0 if there is none;
   or a negative number if the entry is being changed or has another owner. A global function, as above. */
__attribute__((noinline)) int fr_young_find_map(__u32 i, __u32 pid, __u64 pc, struct fr_unwind_map *ret)
{
	struct fr_unwind_shared *shared = fr_young_shared();
	const volatile struct fr_unwind_young *young;
	__u64 owner;
	__u32 n;
	int found = 0;

	if (!shared || !ret)
		return -1;
	owner = *fr_young_owner(shared, i);
	young = fr_young_at(shared, i);
	n = young->n;
	if ((__u32)owner != pid)
		return -1;
	for (__u32 k = 0; k < FR_UNWIND_YOUNG_MAPS && k < n; k++) {
		const volatile struct fr_unwind_map *m = &young->maps[(n - 1 - k) % FR_UNWIND_YOUNG_MAPS];

		if (pc < m->start || pc >= m->end)
			continue;
		ret->start = m->start;
		ret->end = m->end;
		ret->bias = m->bias;
		ret->object = m->object;
		ret->stamp = m->stamp;
		found = 1;
		break;
	}
	/* What was read is right only if nothing has changed meanwhile. */
	return *fr_young_owner(shared, i) == owner ? found : -1;
}

/* Returns the entry of PID that is young enough, or an empty one, or FR_YOUNG_NONE. */
static __always_inline __u32 fr_young_get(struct fr_unwind_shared *shared, __u32 pid)
{
	const __u32 i = fr_young_find(shared, pid);

	if (i != FR_YOUNG_NONE && bpf_ktime_get_ns() - fr_young_at(shared, i)->begin_ns < FR_YOUNG_MAX_NS)
		return i;
	return fr_young_begin(shared, pid);
}

struct fr_young_question {
	struct fr_unwind_shared *shared;
	__u32 young, pid;
	__u32 is_code;
};

static long fr_young_answer(
	struct task_struct *task, struct vm_area_struct___young *vma, struct fr_young_question *q)
{
	q->is_code = (vma->vm_flags & FR_VM_EXEC) != 0;
	if (q->is_code)
		fr_young_add(q->shared, q->young, q->pid, vma);
	return 0;
}

/* Asks the kernel for the map with the address PC of TASK, which is the current task with the pid PID, and
   adds it to the entry YOUNG. Returns 1; 0 if no code is at PC; or a negative number if the maps are being
   changed. In an interrupt, the kernel answers only the first question. */
static __always_inline int fr_young_ask(
	struct fr_unwind_shared *shared, struct task_struct *task, __u32 pid, __u32 young, __u64 pc)
{
	struct fr_young_question q = {shared, young, pid, 0};
	const long r = bpf_find_vma(task, pc, fr_young_answer, &q, 0);

	if (r < 0)
		return r == -2 ? 0 : -1; /* ENOENT: there is no map, or it is not code */
	return q.is_code;
}
