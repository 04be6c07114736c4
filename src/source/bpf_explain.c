// SPDX-License-Identifier: GPL-2.0-or-later
/* Turns the error codes and the output of libbpf and of the kernel into messages. */
#include "base/capability.h"
#include "base/cleanup.h"
#include "source/bpf_log.h"
#include "source/bpf_object_private.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

/* The codes of libbpf itself (4000 and above) are not errnos, so they become -EINVAL. */
static int errno_of(int code)
{
	return code <= -LIBBPF_ERRNO__LIBELF ? -EINVAL : code;
}

/* Writes the missing capabilities into RET: "CAP_BPF", "CAP_PERFMON", or "CAP_BPF and CAP_PERFMON". Returns
   RET; or NULL if none is missing. CAP_SYS_ADMIN includes both. */
static const char *missing_capabilities(char *ret, size_t size)
{
	const bool bpf = fr_has_capability(CAP_BPF), perfmon = fr_has_capability(CAP_PERFMON);

	if (fr_has_capability(CAP_SYS_ADMIN) || (bpf && perfmon))
		return NULL;
	snprintf(ret, size, "%s%s%s", bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ",
		perfmon ? "" : "CAP_PERFMON");
	return ret;
}

static int not_permitted(const char *label, int code, const char *doing, struct fr_diag *d)
{
	char names[64];

	if (missing_capabilities(names, sizeof(names)))
		return fr_fail(d, code, "grant it to the service with AmbientCapabilities= in its unit file",
			"not permitted to %s %s: %s is missing", doing, label, names);
	return fr_fail(d, code,
		"check the kernel's lockdown, security modules, and seccomp filters (SystemCallFilter=)",
		"not permitted to %s %s, although no capability is missing", doing, label);
}

int fr_bpf_explain_open(const char *label, int code, const char *text, struct fr_diag *d)
{
	struct fr_bpf_log_summary v;

	if (code == -ENOMEM)
		return fr_fail_errno(d, code, NULL, "cannot open %s", label);
	fr_bpf_log_summarize(text, &v);
	if (text && strstr(text, "BTF is required"))
		return fr_fail(d, -ENOEXEC, "compile it with -g", "%s has no BTF", label);
	return fr_fail(
		d, -ENOEXEC, v.reason[0] ? v.reason : NULL, "%s is not a BPF object that can be read", label);
}

static int rejected(const char *label, const struct fr_bpf_log_summary *v, struct fr_diag *d)
{
	char hint[sizeof(d->hint)];

	snprintf(hint, sizeof(hint), "%s%s%sthe recorder logs the verifier's output at level debug",
		v->source[0] ? "at `" : "", v->source, v->source[0] ? "`; " : "");
	/* Do not return the verifier's -EACCES: a caller would think that a capability is missing. */
	return fr_fail(d, -EINVAL, hint, "the kernel's verifier rejects the program '%s' of %s: %s",
		v->program, label, v->reason);
}

int fr_bpf_explain_load(const char *label, int code, const char *text, struct fr_diag *d)
{
	struct fr_bpf_log_summary v;

	fr_bpf_log_summarize(text, &v);
	if (v.program[0])
		return rejected(label, &v, d);
	if (code == -EPERM || code == -EACCES)
		return not_permitted(label, code, "load", d);
	if (code == -E2BIG)
		return fr_fail(d, code,
			"reduce its loops and branches: the verifier gives up after a million steps",
			"a program of %s is too complex for the kernel's verifier", label);
	return fr_fail_errno(d, errno_of(code), v.reason[0] ? v.reason : NULL, "cannot load %s", label);
}

int fr_bpf_explain_attach(
	const char *label, const struct bpf_program *program, int code, const char *text, struct fr_diag *d)
{
	const char *sec = bpf_program__section_name(program), *name = bpf_program__name(program);
	struct fr_bpf_log_summary v;
	char tracepoint[128];

	fr_bpf_log_summarize(text, &v);
	if (code == -EPERM || code == -EACCES)
		return not_permitted(label, code, "attach", d);
	if (code == -ENOENT && fr_bpf_tracepoint_of(program, tracepoint, sizeof(tracepoint)))
		return fr_fail(d, -EOPNOTSUPP, NULL,
			"this kernel has no tracepoint '%s', which the program '%s' of %s needs", tracepoint,
			name, label);
	if (code == -EOPNOTSUPP || code == -ESRCH || code == -EINVAL)
		return fr_fail(d, -EINVAL, "use one of the sections that flightrec(7) lists",
			"the program '%s' of %s cannot be attached by its section SEC(\"%s\")", name, label,
			sec);
	return fr_fail_errno(d, errno_of(code), v.reason[0] ? v.reason : NULL,
		"cannot attach the program '%s' of %s to SEC(\"%s\")", name, label, sec);
}
