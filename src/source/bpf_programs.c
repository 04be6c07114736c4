// SPDX-License-Identifier: GPL-2.0-or-later
/* Which of an object's programs are for this kernel: the convention stands in
 * include/flightrec/trigger.bpf.h. */
#include "base/cleanup.h"
#include "source/bpf_object_private.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum kind { TP_BTF, RAW_TP, TRACEPOINT, OTHER };

/* What SEC() names, behind the '/'. */
static enum kind kind_of(const struct bpf_program *p, const char **ret_name)
{
	static const struct {
		const char *prefix;
		enum kind kind;
	} known[] = {{"tp_btf/", TP_BTF}, {"raw_tp/", RAW_TP}, {"raw_tracepoint/", RAW_TP},
		{"raw_tp.w/", RAW_TP}, {"raw_tracepoint.w/", RAW_TP}, {"tp/", TRACEPOINT},
		{"tracepoint/", TRACEPOINT}};
	const char *section = bpf_program__section_name(p);

	for (size_t i = 0; i < FR_ARRAY_SIZE(known); i++) {
		size_t len = strlen(known[i].prefix);

		if (strncmp(section, known[i].prefix, len) == 0) {
			*ret_name = section + len;
			return known[i].kind;
		}
	}
	*ret_name = "";
	return OTHER;
}

const char *fr_bpf_tracepoint_of(const struct bpf_program *program, char *ret, size_t size)
{
	const char *name;
	char *slash;

	if (kind_of(program, &name) == OTHER)
		return NULL;
	snprintf(ret, size, "%s", name);
	slash = strchr(ret, '/');
	if (slash)
		*slash = ':';
	return ret;
}

/* What this kernel has, read once for an object. */
struct kernel {
	struct btf *btf;     /* NULL: it has none, or is not asked */
	const char *tracefs; /* events/; NULL: not mounted */
};

static const char *tracefs_events(void)
{
	static const char *const paths[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(paths); i++)
		if (access(paths[i], F_OK) == 0)
			return paths[i];
	return NULL;
}

/* A tracepoint of a module has its type in that module's BTF. Looked at only where the kernel's own has not
   got it. */
static bool in_module(struct btf *vmlinux, const char *type)
{
	_cleanup_closedir_ DIR *dir = opendir("/sys/kernel/btf");
	const struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		struct btf *btf;

		if (e->d_name[0] == '.' || !strcmp(e->d_name, "vmlinux"))
			continue;
		btf = btf__load_module_btf(e->d_name, vmlinux);
		found = btf && btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
		btf__free(btf);
	}
	return found;
}

static bool in_btf(const struct kernel *k, const char *name)
{
	char type[160];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(k->btf, type, BTF_KIND_TYPEDEF) > 0 || in_module(k->btf, type);
}

/* Is PROGRAM's tracepoint there? What cannot be known here is left to the kernel. */
static bool is_there(const struct kernel *k, const struct bpf_program *program)
{
	char path[256];
	const char *name;

	switch (kind_of(program, &name)) {
	case TP_BTF:
		return k->btf && in_btf(k, name);
	case RAW_TP:
		return !k->btf || in_btf(k, name);
	case TRACEPOINT:
		if (!k->tracefs)
			return false;
		snprintf(path, sizeof(path), "%s/%s/id", k->tracefs, name);
		return access(path, F_OK) == 0;
	case OTHER:
		break;
	}
	return true;
}

static int missing(
	const struct fr_bpf_object *o, const struct kernel *k, const struct bpf_program *p, struct fr_diag *d)
{
	const char *name = bpf_program__name(p), *unused;
	char tracepoint[160];
	enum kind kind = kind_of(p, &unused);

	fr_bpf_tracepoint_of(p, tracepoint, sizeof(tracepoint));
	if (kind == TRACEPOINT && !k->tracefs)
		return fr_fail(d, -EOPNOTSUPP, "mount -t tracefs nodev /sys/kernel/tracing",
			"tracefs is not mounted: the program '%s' of %s needs the tracepoint '%s'", name,
			o->label, tracepoint);
	if (kind == TP_BTF && !k->btf)
		return fr_fail(d, -EOPNOTSUPP, "CONFIG_DEBUG_INFO_BTF=y would give it one",
			"this kernel has no BTF, which the program '%s' of %s needs for the tracepoint '%s'",
			name, o->label, tracepoint);
	return fr_fail(d, -EOPNOTSUPP, NULL,
		"this kernel has no tracepoint '%s', which the program '%s' of %s needs", tracepoint, name,
		o->label);
}

/* The other one of NAME_btf and NAME_classic, or NULL. */
static struct bpf_program *twin_of(const struct fr_bpf_object *o, const struct bpf_program *p, bool *ret_btf)
{
	static const char btf[] = "_btf", classic[] = "_classic";
	const char *name = bpf_program__name(p), *other = NULL;
	size_t len = strlen(name), stem = 0;
	char twin[128];

	*ret_btf = false;
	if (len > strlen(btf) && !strcmp(name + len - strlen(btf), btf)) {
		stem = len - strlen(btf);
		other = classic;
		*ret_btf = true;
	} else if (len > strlen(classic) && !strcmp(name + len - strlen(classic), classic)) {
		stem = len - strlen(classic);
		other = btf;
	}
	if (!other || stem > sizeof(twin) - sizeof(classic))
		return NULL;
	snprintf(twin, sizeof(twin), "%.*s%s", (int)stem, name, other);
	return bpf_object__find_program_by_name(o->libbpf, twin);
}

/* 1: load P, 0: do not, or what missing() says. */
static int wants(const struct fr_bpf_object *o, const struct kernel *k, const struct bpf_program *p,
	bool optional, struct fr_diag *d)
{
	bool is_btf;
	const struct bpf_program *twin = twin_of(o, p, &is_btf);

	if (twin && !is_btf && is_there(k, twin))
		return 0;
	if (is_there(k, p))
		return 1;
	/* Of two, it is the classic one's to say what is missing. */
	return optional || (twin && is_btf) ? 0 : missing(o, k, p, d);
}

int fr_bpf_check_programs(const struct fr_bpf_object *o, struct fr_diag *d)
{
	struct bpf_program *p;

	if (!bpf_object__next_program(o->libbpf, NULL))
		return fr_fail(d, -ENOEXEC, "a program is a function with SEC(\"tp_btf/...\") or the like",
			"%s has no program", o->label);
	bpf_object__for_each_program(
		p, o->libbpf) if (bpf_program__type(p) == BPF_PROG_TYPE_UNSPEC) return fr_fail(d, -EINVAL,
		"flightrec(7) lists the sections that can be used",
		"the program '%s' of %s has a section that does not say where to attach it: "
		"SEC(\"%s\")",
		bpf_program__name(p), o->label, bpf_program__section_name(p));
	return 0;
}

/* O has a program. */
static int choose(struct fr_bpf_object *o, const struct kernel *k, struct fr_diag *d)
{
	struct bpf_program *p, *last;
	size_t n = 0;

	last = NULL;
	bpf_object__for_each_program(p, o->libbpf)
	{
		/* libbpf takes SEC("?...") for: do not load by itself. */
		int r = wants(o, k, p, !bpf_program__autoload(p), d);

		if (r < 0)
			return r;
		bpf_program__set_autoload(p, r);
		n += (size_t)r;
		last = p;
	}
	return n ? 0 : missing(o, k, last, d);
}

int fr_bpf_object_choose(struct fr_bpf_object *o, struct fr_diag *d)
{
	struct kernel k = {.btf = o->classic ? NULL : btf__load_vmlinux_btf(), .tracefs = tracefs_events()};
	int r = choose(o, &k, d);

	btf__free(k.btf);
	return r;
}
