// SPDX-License-Identifier: GPL-2.0-or-later
/* Which tracepoints BPF programs can record, and which ones they record better than perf (docs/design/14). */
#include "capture/bpf_filter.h"
#include "capture/bpf_tracepoint.h"
#include "capture/event_internal.h"
#include "capture/perf_open.h"
#include "base/cleanup.h"
#include "base/pidns.h"
#include "perfdata/record.h"

#include <errno.h>
#include <asm/unistd.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#define SAMPLE_TYPES (FR_SAMPLE_TYPE | PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN)

/* The tracepoints with a program of their own, and the fields that the program makes. common_flags says
   whether interrupts are off there, which a program cannot see; common_preempt_count is that of perf. */
static const struct {
	const char *name, *fields;
	uint32_t flags, preempt_count;
} raw_tracepoints[] = {
	[FR_BPF_SYS_ENTER] = {"raw_syscalls:sys_enter", " id:8:8 args:16:48", 0, 1},
	[FR_BPF_SYS_EXIT] = {"raw_syscalls:sys_exit", " id:8:8 ret:16:8", 0, 1},
	[FR_BPF_SCHED_SWITCH] = {"sched:sched_switch",
		" prev_comm:8:16 prev_pid:24:4 prev_prio:28:4 prev_state:32:8 next_comm:40:16 next_pid:56:4 "
		"next_prio:60:4",
		1, 2},
	[FR_BPF_SCHED_WAKING] = {"sched:sched_waking", " comm:8:16 pid:24:4 prio:28:4 target_cpu:32:4", 1, 2},
};

static bool has_fields(const struct fr_tracepoint_format *f, const char *wanted)
{
	char text[1024];
	size_t len = 0;

	text[0] = 0;
	for (size_t i = 0; i < f->n_fields && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %s:%u:%u", f->fields[i].name,
			f->fields[i].offset, f->fields[i].bytes);
	return !strcmp(text, wanted);
}

/* Finds the number of the system call NAME, as tracefs calls it: by the name of the kernel's function. */
static bool find_call(const char *name, uint32_t *ret)
{
	static const struct {
		const char *name;
		uint32_t number;
	} calls[] = {
#define SYSCALL(name) {#name, __NR_##name},
#define SYSCALL_WAITS(name) SYSCALL(name)
#include "syscalls.inc"
#ifdef __x86_64__
		{"newstat", __NR_stat},
		{"newfstat", __NR_fstat},
		{"newlstat", __NR_lstat},
		{"sendfile64", __NR_sendfile},
#endif
		{"newuname", __NR_uname},
		{"umount", __NR_umount2},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(calls); i++)
		if (!strcmp(calls[i].name, name) && calls[i].number < FR_BPF_CALLS_MAX) {
			*ret = calls[i].number;
			return true;
		}
	return false;
}

/* Returns whether the format is that of a system call: its number, and then its arguments or its result. */
static bool is_call_format(const struct fr_tracepoint_format *f)
{
	const struct fr_field *number = fr_tracepoint_format_find(f, "__syscall_nr");

	if (!number || number != &f->fields[0] || number->offset != 8 || f->n_fields > 7 || f->dynamic)
		return false;
	for (uint32_t i = 1; i < f->n_fields; i++)
		if (f->fields[i].offset != 8 + 8 * i || f->fields[i].bytes != 8)
			return false;
	return true;
}

static enum fr_bpf_tracepoint_kind find_kind(
	const char *tracepoint, const struct fr_tracepoint_format *f, uint32_t *ret_call)
{
#ifdef __x86_64__ /* the programs know its registers */
	if (!strncmp(tracepoint, "syscalls:sys_enter_", 19) && is_call_format(f) &&
		find_call(tracepoint + 19, ret_call))
		return FR_BPF_CALL_ENTER;
	if (!strncmp(tracepoint, "syscalls:sys_exit_", 18) && is_call_format(f) &&
		find_call(tracepoint + 18, ret_call))
		return FR_BPF_CALL_EXIT;
	for (unsigned k = 0; k < FR_ARRAY_SIZE(raw_tracepoints); k++)
		if (!strcmp(raw_tracepoints[k].name, tracepoint) && has_fields(f, raw_tracepoints[k].fields))
			return k;
#endif
	return FR_BPF_ANY_TRACEPOINT;
}

static bool is_cgroup2(int fd)
{
	struct statfs s;

	return fstatfs(fd, &s) == 0 && s.f_type == CGROUP2_SUPER_MAGIC;
}

/* Returns what the recording or the event E has that a program cannot do; NULL: nothing. */
static const char *find_obstacle(
	const struct fr_event *e, const struct fr_capture_config *config, const struct fr_target *t)
{
	const struct perf_event_attr *a = &e->attr;

	if (config->n_pids)
		return "the recording is of chosen processes";
	if (t->cgroup_fd >= 0 && !is_cgroup2(t->cgroup_fd))
		return "the cgroup is not of version 2";
	if (e->overwrite)
		return "it has the term overwrite";
	if (a->freq || a->sample_period != 1)
		return "it has a frequency or a period";
	if (a->sample_type & PERF_SAMPLE_PERIOD)
		return "its samples have a weight, or those of sched:sched_stat_* in the same recording";
	if (a->exclude_user || a->exclude_kernel || a->exclude_hv || a->exclude_idle)
		return "it has modifiers";
	if (a->sample_type & ~(uint64_t)SAMPLE_TYPES)
		return "its call graph is not unwind, fp or no";
	if (fr_own_pidns())
		return "the recorder is in a pid namespace";
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return "the kernel has no BTF";
	return NULL;
}

static const char *find_format_obstacle(const struct fr_tracepoint_format *f)
{
	if (f->is_relative || !f->entry_bytes)
		return "its fields have types that are not known here";
	if (f->entry_bytes > FR_BPF_RAW_MAX - 8)
		return "its fields are too long";
	return NULL;
}

static bool is_system_call(const struct fr_event *e)
{
	return !strncmp(e->tracepoint, "syscalls:", 9);
}

static void describe_stack(const struct fr_event *e, struct fr_bpf_tracepoint *ret)
{
	const struct perf_event_attr *a = &e->attr;
	const bool at_user = is_system_call(e);

	if (a->sample_type & PERF_SAMPLE_CALLCHAIN)
		ret->flags = FR_BPF_CALLCHAIN |
			     (a->exclude_callchain_kernel || at_user ? 0 : FR_BPF_KERNEL_STACK) |
			     (a->exclude_callchain_user ? 0 : FR_BPF_USER_STACK) |
			     (e->unwind ? 0 : FR_BPF_USER_FP);
	ret->flags |= at_user ? FR_BPF_AT_USER : 0;
	ret->max_stack =
		a->sample_max_stack ? FR_MIN(a->sample_max_stack, FR_BPF_STACK_MAX) : FR_BPF_STACK_MAX;
}

static void describe_raw_data(const struct fr_tracepoint_format *f, struct fr_bpf_plan *p)
{
	struct fr_bpf_tracepoint *t = &p->entry;

	t->type = f->id;
	if (p->kind < FR_ARRAY_SIZE(raw_tracepoints))
		t->type |= raw_tracepoints[p->kind].flags << 16 | raw_tracepoints[p->kind].preempt_count
									  << 24;
	else if (p->kind != FR_BPF_ANY_TRACEPOINT)
		t->type |= 1 << 24; /* the preempt count of perf */
	/* A system call without arguments has only its number, and 4 bytes of padding. */
	t->data_bytes = p->kind == FR_BPF_CALL_ENTER ? FR_ALIGN_UP(f->data_bytes, 8u) : f->data_bytes;
	t->dynamic = f->dynamic;
	t->dynamic_begin = f->data_bytes;
	/* perf adds 4 bytes for the size, and then pads to 8 bytes. */
	t->raw_bytes = f->dynamic ? f->entry_bytes : FR_ALIGN_UP(f->entry_bytes + 4, 8u) - 4;
}

/* Whether a program records E better than perf. The program of all other tracepoints does not run in an
   interrupt that interrupts it, so the event of the interrupt is lost. */
static bool is_better(const struct fr_event *e, const struct fr_bpf_plan *p)
{
	return e->unwind || p->kind != FR_BPF_ANY_TRACEPOINT;
}

static int plan_raw_data(const struct fr_event *e, struct fr_bpf_plan *ret, char *why, size_t why_size)
{
	_cleanup_buf_ struct fr_buf text = {0};
	struct fr_tracepoint_format f = {0};
	const char *obstacle;
	int r = fr_tracepoint_read_format(&fr_event_env_machine, e->tracepoint, &text);

	if (r == 0)
		r = fr_tracepoint_format_parse((char *)text.data, &f);
	obstacle = r < 0 ? "its format cannot be read" : find_format_obstacle(&f);
	if (obstacle) {
		snprintf(why, why_size, "%s", obstacle);
		return -EOPNOTSUPP;
	}
	ret->kind = find_kind(e->tracepoint, &f, &ret->call);
	describe_raw_data(&f, ret);
	return e->filter ? fr_bpf_filter_compile(e->filter, &f, &ret->entry.filter, why, why_size) : 0;
}

int fr_bpf_plan_event(const struct fr_event *e, const struct fr_capture_config *config,
	const struct fr_target *t, struct fr_bpf_plan *ret, struct fr_diag *d)
{
	const char *obstacle;
	char why[256];
	int r = 0;

	*ret = (struct fr_bpf_plan){.holder = -1, .link = -1};
	if (!e->tracepoint || e->capture == FR_CAPTURE_PERF)
		return 0;
	obstacle = find_obstacle(e, config, t);
	snprintf(why, sizeof(why), "%s", obstacle ? obstacle : "");
	snprintf(ret->name, sizeof(ret->name), "%s", strchr(e->tracepoint, ':') + 1);
	if (!obstacle) {
		describe_stack(e, &ret->entry);
		r = plan_raw_data(e, ret, why, sizeof(why));
	}
	if (!obstacle && r == 0)
		return e->capture == FR_CAPTURE_BPF || is_better(e, ret);
	if (e->capture != FR_CAPTURE_BPF)
		return 0;
	return fr_fail(d, -EOPNOTSUPP, "write capture=auto, and perf records it",
		"no BPF program can record %s: %s", e->tracepoint, why);
}
