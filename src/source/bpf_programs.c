// SPDX-License-Identifier: GPL-2.0-or-later
/* Chooses those programs of an object that this kernel can run, by the rules about names in
   include/flightrec/trigger.bpf.h. */
#include "base/cleanup.h"
#include "source/bpf_object_private.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum kind { TP_BTF, RAW_TP, TRACEPOINT, OTHER };

/* Returns the kind of P. RET_NAME gets the part of P's SEC() after the first '/'. */
static enum kind get_kind(const struct bpf_program *p, const char **ret_name)
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

	if (get_kind(program, &name) == OTHER)
		return NULL;
	snprintf(ret, size, "%s", name);
	slash = strchr(ret, '/');
	if (slash)
		*slash = ':';
	return ret;
}

/* The features of this kernel. */
struct kernel {
	struct btf *btf;     /* NULL: the kernel has no BTF, or the BTF must not be used */
	const char *tracefs; /* the directory "events" of tracefs; NULL: tracefs is not mounted */
};

static const char *find_tracefs_events(void)
{
	static const char *const paths[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(paths); i++)
		if (access(paths[i], F_OK) == 0)
			return paths[i];
	return NULL;
}

/* Returns whether the BTF of any kernel module has TYPE. (The BTF of a module has a type for each tracepoint
   of the module.) */
static bool is_in_module_btf(struct btf *vmlinux, const char *type)
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

static bool is_in_btf(const struct kernel *k, const char *name)
{
	char type[160];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(k->btf, type, BTF_KIND_TYPEDEF) > 0 || is_in_module_btf(k->btf, type);
}

/* Returns whether the kernel has PROGRAM's tracepoint. Also returns true if PROGRAM is not for a tracepoint,
   or if this function cannot find out whether the kernel has the tracepoint. */
static bool has_tracepoint(const struct kernel *k, const struct bpf_program *program)
{
	char path[256];
	const char *name;

	switch (get_kind(program, &name)) {
	case TP_BTF:
		return k->btf && is_in_btf(k, name);
	case RAW_TP:
		return !k->btf || is_in_btf(k, name);
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

static int explain_missing(
	const struct fr_bpf_object *o, const struct kernel *k, const struct bpf_program *p, struct fr_diag *d)
{
	const char *name = bpf_program__name(p), *unused;
	char tracepoint[160];
	enum kind kind = get_kind(p, &unused);

	fr_bpf_tracepoint_of(p, tracepoint, sizeof(tracepoint));
	if (kind == TRACEPOINT && !k->tracefs)
		return fr_fail(d, -EOPNOTSUPP, "run `mount -t tracefs nodev /sys/kernel/tracing`",
			"tracefs is not mounted: the program '%s' of %s needs the tracepoint '%s'", name,
			o->label, tracepoint);
	if (kind == TP_BTF && !k->btf)
		return fr_fail(d, -EOPNOTSUPP, "use a kernel with CONFIG_DEBUG_INFO_BTF=y",
			"this kernel has no BTF, which the program '%s' of %s needs for the tracepoint '%s'",
			name, o->label, tracepoint);
	return fr_fail(d, -EOPNOTSUPP, NULL,
		"this kernel has no tracepoint '%s', which the program '%s' of %s needs", tracepoint, name,
		o->label);
}

/* The ABI allows two variants of a program, NAME_btf and NAME_classic. At most one of the two
   variants is loaded. Returns the other variant of P, or NULL if P has no other variant. RET_BTF gets
   whether P is NAME_btf. */
static struct bpf_program *find_variant(
	const struct fr_bpf_object *o, const struct bpf_program *p, bool *ret_btf)
{
	const char *name = bpf_program__name(p), *suffix = strrchr(name, '_');
	char variant[128];

	*ret_btf = suffix && !strcmp(suffix, "_btf");
	if (!suffix || suffix == name || (!*ret_btf && strcmp(suffix, "_classic") != 0))
		return NULL;
	if (snprintf(variant, sizeof(variant), "%.*s%s", (int)(suffix - name), name,
		    *ret_btf ? "_classic" : "_btf") >= (int)sizeof(variant))
		return NULL;
	return bpf_object__find_program_by_name(o->libbpf, variant);
}

/* Returns 1 if P has to be loaded; 0 if not; or -EOPNOTSUPP, with a message in D, if the kernel does not have
   P's tracepoint and `optional` is false. */
static int choose_program(const struct fr_bpf_object *o, const struct kernel *k, const struct bpf_program *p,
	bool optional, struct fr_diag *d)
{
	bool is_btf;
	const struct bpf_program *variant = find_variant(o, p, &is_btf);

	if (variant && !is_btf && has_tracepoint(k, variant))
		return 0;
	if (has_tracepoint(k, p))
		return 1;
	/* If the kernel has the tracepoint of neither variant, the call for the classic variant reports the
	   error. */
	return optional || (variant && is_btf) ? 0 : explain_missing(o, k, p, d);
}

int fr_bpf_check_programs(const struct fr_bpf_object *o, struct fr_diag *d)
{
	struct bpf_program *p;

	if (!bpf_object__next_program(o->libbpf, NULL))
		return fr_fail(d, -ENOEXEC, "write a function with SEC(\"tp_btf/...\") or a similar section",
			"%s has no program", o->label);
	bpf_object__for_each_program(p, o->libbpf)
	{
		if (bpf_program__type(p) == BPF_PROG_TYPE_UNSPEC)
			return fr_fail(d, -EINVAL, "use one of the sections that flightrec(7) lists",
				"the program '%s' of %s has an unknown section: SEC(\"%s\")",
				bpf_program__name(p), o->label, bpf_program__section_name(p));
	}
	return 0;
}

static int choose(struct fr_bpf_object *o, const struct kernel *k, struct fr_diag *d)
{
	struct bpf_program *p, *last;
	size_t n = 0;

	last = NULL;
	bpf_object__for_each_program(p, o->libbpf)
	{
		/* libbpf does not autoload a program with SEC("?..."). Here, such a program is optional. */
		int r = choose_program(o, k, p, !bpf_program__autoload(p), d);

		if (r < 0)
			return r;
		bpf_program__set_autoload(p, r);
		n += (size_t)r;
		last = p;
	}
	return n ? 0 : explain_missing(o, k, last, d);
}

int fr_bpf_object_choose(struct fr_bpf_object *o, struct fr_diag *d)
{
	struct kernel k = {
		.btf = o->classic ? NULL : btf__load_vmlinux_btf(), .tracefs = find_tracefs_events()};
	int r = choose(o, &k, d);

	btf__free(k.btf);
	return r;
}
