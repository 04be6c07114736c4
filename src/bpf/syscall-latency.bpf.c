// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Measures each system call that the array `syscalls` selects. By default, the array selects all calls whose
 * purpose is not to wait. Fires when the call returns; the detail is the name of the call. With BTF, ignores
 * 32-bit programs, whose system calls have other numbers. While the probe is armed, every system call on the
 * machine takes the kernel's slow path, even a call that is not selected.
 */
#include <linux/bpf.h>
#include <asm/unistd.h>
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>
#include "core.h"

char LICENSE[] SEC("license") = "GPL";

#define SYSCALLS 512
#define NAME_SIZE 32

/* 1: the call is watched. Syscall= replaces the array (source/syscalls.h). */
#define SYSCALL(name) [__NR_##name] = 1,
#define SYSCALL_WAITS(name) [__NR_##name] = 0,
const volatile __u8 syscalls[SYSCALLS] = {
#include "syscalls.inc"
};
#undef SYSCALL
#undef SYSCALL_WAITS

#define SYSCALL(name) [__NR_##name] = #name,
#define SYSCALL_WAITS SYSCALL
static const char names[SYSCALLS][NAME_SIZE] = {
#include "syscalls.inc"
};

struct call {
	__u64 begin_ns; /* 0: the thread is not in a watched call */
	__u32 nr;
};

/* These values of saved registers mean that a 32-bit program makes the call. */
#define X86_USER32_CS 0x23
#define ARM64_MODE32 0x10

struct pt_regs___x86 {
	unsigned long cs;
} __attribute__((preserve_access_index));

struct pt_regs___arm64 {
	__u64 pstate;
} __attribute__((preserve_access_index));

static __always_inline int is_32bit(void *regs)
{
	struct pt_regs___x86 *x86 = regs;
	struct pt_regs___arm64 *arm64 = regs;

	if (bpf_core_field_exists(x86->cs))
		return BPF_CORE_READ(x86, cs) == X86_USER32_CS;
	if (bpf_core_field_exists(arm64->pstate))
		return BPF_CORE_READ(arm64, pstate) & ARM64_MODE32;
	return 0;
}

static __always_inline int is_watched(unsigned long nr)
{
	return nr < SYSCALLS && syscalls[nr & (SYSCALLS - 1)];
}

static __always_inline void end_call(struct call *call)
{
	__u64 now, time;

	if (!call || !call->begin_ns)
		return;
	now = bpf_ktime_get_ns();
	time = now - call->begin_ns;
	call->begin_ns = 0;
	if (fr_is_below(time))
		return;
	fr_fire_current("slow system call", names[call->nr & (SYSCALLS - 1)], now, time);
}

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} calls SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter_btf, void *regs, unsigned long nr)
{
	struct call *call;

	if (!is_watched(nr) || is_32bit(regs))
		return 0;
	call = bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call)
		return 0;
	call->nr = nr;
	call->begin_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit_btf)
{
	end_call(bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0, 0));
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct call);
} calls_by_tid SEC(".maps");

SEC("raw_tp/sys_enter")
int sys_enter_classic(struct bpf_raw_tracepoint_args *ctx)
{
	unsigned long nr = ctx->args[1];
	struct call call = {.nr = nr};
	__u32 tid;

	if (!is_watched(nr))
		return 0;
	tid = bpf_get_current_pid_tgid();
	call.begin_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&calls_by_tid, &tid, &call, BPF_ANY);
	return 0;
}

SEC("raw_tp/sys_exit")
int sys_exit_classic(void *ctx)
{
	__u32 tid = bpf_get_current_pid_tgid();

	end_call(bpf_map_lookup_elem(&calls_by_tid, &tid));
	bpf_map_delete_elem(&calls_by_tid, &tid);
	return 0;
}
