// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes a message and a hint from the kernel's errno, the settings of the machine and the capabilities of
   this process. */
#include "capture/capture_internal.h"
#include "base/capability.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

static long sysctl_value(const char *path)
{
	char line[32];

	return fr_read_line(path, line, sizeof(line)) < 0 ? -1 : strtol(line, NULL, 10);
}

static int explain_forbidden(struct fr_diag *d, int code, const char *what)
{
	char paranoid[32] = "?", hint[512];

	(void)fr_read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
	if (fr_has_capability(CAP_SYS_ADMIN))
		snprintf(hint, sizeof(hint),
			"CAP_SYS_ADMIN is there, so a seccomp filter (SystemCallFilter=), a container or a "
			"security module forbids perf_event_open");
	else if (fr_has_capability(CAP_PERFMON) && strtol(paranoid, NULL, 10) >= 3)
		snprintf(hint, sizeof(hint),
			"kernel.perf_event_paranoid is %s: this kernel then refuses even CAP_PERFMON; set "
			"it to 2 or lower, or give CAP_SYS_ADMIN",
			paranoid);
	else if (fr_has_capability(CAP_PERFMON))
		snprintf(hint, sizeof(hint),
			"this process has CAP_PERFMON, but before Linux 5.8, and for processes of other "
			"users "
			"(CAP_SYS_PTRACE), that is not enough: run as root");
	else
		snprintf(hint, sizeof(hint),
			"run as root, or give CAP_PERFMON (AmbientCapabilities=CAP_PERFMON), or set "
			"kernel.perf_event_paranoid, which is %s, to -1",
			paranoid);
	return fr_fail(d, code, hint, "not permitted to open %s: %s", what, strerror(-code));
}

static int explain_unsupported(struct fr_diag *d, int code, const struct fr_event *e, const char *what)
{
	const struct perf_event_attr *a = &e->attr;

	if (a->precise_ip)
		return fr_fail(d, code, "leave out the modifier p",
			"this CPU or PMU has no precise samples for %s", what);
	if (a->sample_type & PERF_SAMPLE_BRANCH_STACK)
		return fr_fail(d, code, "use --call-graph fp or dwarf",
			"this CPU or PMU has no branch records for %s", what);
	if (a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE || a->type == PERF_TYPE_RAW)
		return fr_fail(d, code,
			"cpu-clock samples by time without a hardware PMU (usual in virtual machines)",
			"this CPU or PMU cannot count %s", what);
	return fr_fail(d, code,
		"choose an event that can be sampled, or leave out the modifiers u, k and h, which some PMUs "
		"do "
		"not support",
		"this CPU or PMU cannot sample %s", what);
}

/* The kernel returns EINVAL for a frequency above its limit, and also for attrs that do not go together. */
static int explain_invalid(struct fr_diag *d, int code, const struct fr_event *e, const char *what)
{
	const long most = sysctl_value("/proc/sys/kernel/perf_event_max_sample_rate");
	char hint[256];

	if (!e->attr.freq || most <= 0 || e->attr.sample_freq <= (uint64_t)most)
		return fr_fail_errno(d, code,
			"this kernel or PMU does not take this combination of event, terms and modifiers",
			"cannot open %s", what);
	snprintf(hint, sizeof(hint),
		"give -F %ld or less; or `sysctl kernel.perf_event_max_sample_rate=%llu`, which the kernel "
		"lowers again if interrupts take more than kernel.perf_cpu_time_max_percent",
		most, (unsigned long long)e->attr.sample_freq);
	return fr_fail(d, code, hint,
		"cannot open %s: %llu samples a second are more than kernel.perf_event_max_sample_rate, "
		"which is %ld",
		what, (unsigned long long)e->attr.sample_freq, most);
}

int fr_explain_open(struct fr_diag *d, int code, const struct fr_event *e, int cpu, pid_t tid)
{
	/* The user has not configured the side-band event, so its name alone would not help. */
	const char *name = e->attr.mmap ? "the event for side-band (dummy)" : e->name, *hint = NULL;
	char what[256];

	if (tid > 0)
		snprintf(what, sizeof(what), "%.160s for thread %d on CPU %d", name, tid, cpu);
	else
		snprintf(what, sizeof(what), "%.160s on CPU %d", name, cpu);
	switch (code) {
	case -EACCES:
	case -EPERM:
		return explain_forbidden(d, code, what);
	case -ENOENT:
	case -EOPNOTSUPP:
	case -ENXIO:
		return explain_unsupported(d, code, e, what);
	case -ENODEV:
		if (e->attr.type == PERF_TYPE_SOFTWARE || e->attr.type == PERF_TYPE_TRACEPOINT)
			return fr_fail(d, code, NULL, "cannot open %s: the CPU went offline", what);
		return explain_unsupported(d, code, e, what);
	case -EMFILE:
	case -ENFILE:
		hint = "raise LimitNOFILE= (ulimit -n), or record fewer events or threads";
		break;
	case -EBUSY:
		hint = e->aux ? "its PMU serves one user at a time: stop the other program that traces (perf "
				"record, another flightrecd). A reload cannot change the terms, the cgroup "
				"or "
				"the AuxBuffer= of such an event: restart flightrecd, or leave the event out "
				"of "
				"one reload"
			      : "stop the other program that has reserved the counter";
		break;
	case -ENOSYS:
		return fr_fail(d, code, "use a kernel with CONFIG_PERF_EVENTS",
			"this kernel has no perf_event_open");
	case -EBADF:
		return fr_fail(d, code, "give a cgroup of cgroup2, or of the perf_event hierarchy",
			"cannot open %s: perf cannot use this cgroup", what);
	case -EINVAL:
		return explain_invalid(d, code, e, what);
	default:
		break;
	}
	return fr_fail_errno(d, code, hint, "cannot open %s", what);
}

int fr_explain_origin(struct fr_diag *d, int code, const struct fr_event *e)
{
	if (code < 0 && e->origin)
		fr_diag_prefix(d, "%s", e->origin);
	return code;
}

/* Writes to RET what a user can do if N pieces of SIZE may not be locked. KEYS are the keys that make them
   smaller. */
static void explain_memlock(
	size_t n, const char *what, const char *size, const char *keys, char *ret, size_t ret_size)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	snprintf(ret, ret_size,
		"%zu %s of %s exceed kernel.perf_event_mlock_kb (%ld for each CPU) and RLIMIT_MEMLOCK "
		"(%llu KiB): give CAP_IPC_LOCK%s, raise LimitMEMLOCK= or the sysctl, or choose a smaller %s",
		n, what, size, sysctl_value("/proc/sys/kernel/perf_event_mlock_kb"),
		(unsigned long long)limit.rlim_cur / 1024,
		fr_has_capability(CAP_IPC_LOCK)
			? " (this process has it, but not in the first user namespace)"
			: "",
		keys);
}

int fr_explain_map(struct fr_diag *d, int code, size_t ring_bytes, size_t n_rings)
{
	char size[FR_UNIT_SIZE], hint[512];

	fr_size_format(ring_bytes, size);
	if (code != -EPERM && code != -EAGAIN)
		return fr_fail_errno(d, code, code == -ENOMEM ? "choose a smaller KernelBuffer=" : NULL,
			"cannot map a kernel ring of %s", size);
	explain_memlock(n_rings, "rings", size, "KernelBuffer= or SidebandBuffer=", hint, sizeof(hint));
	return fr_fail(d, code, hint, "not permitted to lock the memory of a kernel ring of %s", size);
}

int fr_explain_aux_map(
	struct fr_diag *d, int code, const struct fr_event *e, size_t aux_bytes, size_t n_areas)
{
	char size[FR_UNIT_SIZE], hint[512];

	fr_size_format(aux_bytes, size);
	if (code == -EPERM || code == -EAGAIN) {
		explain_memlock(n_areas, "AUX areas", size, "AuxBuffer=", hint, sizeof(hint));
		return fr_fail(d, code, hint, "not permitted to lock the memory of an AUX area of %s", size);
	}
	if (code == -EINVAL)
		return fr_fail_errno(d, code, "choose another AuxBuffer=: some PMUs limit the size",
			"cannot map an AUX area of %s for %s", size, e->name);
	return fr_fail_errno(d, code, code == -ENOMEM ? "choose a smaller AuxBuffer=" : NULL,
		"cannot map an AUX area of %s for %s", size, e->name);
}
