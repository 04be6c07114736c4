// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Function= and USDT=: uprobes. Their programs (src/bpf/function.bpf.c) measure the time in the kernel.
 *
 *     key                                    has a probe         is an anomaly
 *     Function=PATH:SYMBOL, Threshold=       entry and return    a call that took too long
 *     Function=PATH:SYMBOL[+0xOFFSET]        that instruction    each time a thread reaches it
 *     USDT=PATH:P:BEGIN,P:END, Threshold=    both markers        the time between them is too long
 *     USDT=PATH:P:NAME                       that marker         each time a thread reaches it
 *
 * The source reads the symbols from an open file, and attaches the probes to that open file, not to its path.
 * With Pid=, only that process has the probes, so no other process becomes slower.
 */
#include "source/source.h"
#include "base/cleanup.h"
#include "base/foreign.h"
#include "source/bpf_log.h"
#include "source/bpf_object.h"
#include "source/bpf_source.h"
#include "source/elf_symbol.h"

#include "function.skel.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UPROBE_PMU "/sys/bus/event_source/devices/uprobe/type"
#define CGROUP_DEPTH 4
#define ENOTSUPP 524 /* not in <errno.h>; the kernel cannot single-step the probed instruction */

/* The parsed value of Function= or USDT=. The strings point into TEXT. */
struct spec {
	char *text;
	const char *path, *symbol;	   /* symbol: Function= only */
	const char *provider[2], *name[2]; /* USDT= only: begin and end, or one marker */
	bool measures_duration;
	uint64_t threshold_ns;
};

static void spec_deinit(struct spec *s)
{
	free(s->text);
}
#define _cleanup_spec_ _cleanup_(spec_deinit)

/* Cuts the last ":WORD" off TEXT. Returns WORD, or NULL if TEXT has no ":WORD". */
static char *split_last(char *text)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text || !colon[1])
		return NULL;
	*colon = '\0';
	return colon + 1;
}

/* Parses the text from its end, because a path can contain colons and commas. */
static bool parse_markers(struct spec *s)
{
	char *last = strrchr(s->text, ':'), *comma;

	if (!last)
		return false;
	for (comma = last; comma > s->text && *comma != ',' && *comma != '/'; comma--)
		;
	if (*comma == ',') {
		*comma = '\0';
		s->name[1] = split_last(comma + 1);
		s->provider[1] = comma + 1;
		if (!s->name[1])
			return false;
	}
	s->name[0] = split_last(s->text);
	s->provider[0] = s->name[0] ? split_last(s->text) : NULL;
	return s->provider[0] && !strchr(s->name[0], ',');
}

static int parse_threshold(const struct fr_trigger_config *config, struct spec *s, struct fr_diag *d)
{
	s->measures_duration = config->threshold;
	if (config->threshold && fr_threshold_parse(config->threshold, FR_CAUSE_NS, &s->threshold_ns) < 0)
		return fr_fail(d, -EINVAL, "write a duration, for example Threshold=5ms",
			"the trigger %s: Threshold=%s is not a duration", config->name, config->threshold);
	if (s->provider[0] && !s->name[1] && config->threshold)
		return fr_fail(d, -EINVAL,
			"name the end marker too (provider:begin,provider:end), or leave Threshold= out",
			"the trigger %s: Threshold= needs two markers, a begin and an end", config->name);
	if (s->name[1] && !config->threshold)
		return fr_fail(d, -EINVAL, "add Threshold=, for example Threshold=5ms",
			"the trigger %s: the time between two markers needs a Threshold=", config->name);
	return 0;
}

static int parse_spec(const struct fr_trigger_config *config, struct spec *s, struct fr_diag *d)
{
	bool usdt = config->kind == FR_TRIGGER_USDT;

	s->text = strdup(config->subject ? config->subject : "");
	if (!s->text)
		return -ENOMEM;
	s->path = s->text;
	if (usdt ? !parse_markers(s) : !(s->symbol = split_last(s->text)))
		return fr_fail(d, -EINVAL,
			usdt ? "write USDT=/path/to/binary:provider:begin,provider:end"
			     : "write Function=/path/to/binary:symbol",
			"the trigger %s: \"%s\" does not say what to probe", config->name,
			config->subject ? config->subject : "");
	if (s->path[0] != '/')
		return fr_fail(d, -EINVAL, "write a path that begins with /",
			"the trigger %s: not an absolute path: %s", config->name, s->path);
	return parse_threshold(config, s, d);
}

static int function_check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	_cleanup_spec_ struct spec s = {0};

	return parse_spec(config, &s, d);
}

/* One probe: a program, and the instruction at which the program runs. */
struct site {
	const char *program;
	bool at_return;
	uint64_t offset, semaphore;
};

struct plan {
	struct fr_elf *elf;
	pid_t pid; /* the process that gets the probes; 0: all processes get them */
	struct site v[2 * FR_ELF_MARKERS_MAX];
	size_t n;
};

static void add_site(struct plan *p, const char *program, bool at_return, uint64_t offset, uint64_t semaphore)
{
	p->v[p->n++] = (struct site){program, at_return, offset, semaphore};
}

static int plan_function(const struct spec *s, struct plan *p, struct fr_diag *d)
{
	struct fr_elf_symbol symbol;
	int r = fr_elf_find_symbol(p->elf, s->symbol, &symbol, d);

	if (r < 0)
		return r;
	if (!s->measures_duration) {
		add_site(p, "function_hit", false, symbol.offset, 0);
		return 0;
	}
	/* For the return probe, the kernel replaces the return address on the stack. The kernel knows the
	   place of the return address only at the function's entry. A Go program moves its stacks, and
	   crashes when it finds the kernel's address on a stack. */
	if (symbol.into)
		return fr_fail(d, -EINVAL, "leave +0xOFFSET out, or leave Threshold= out",
			"cannot measure a call from %s: a call is measured from the function's entry",
			s->symbol);
	if (fr_elf_is_go(p->elf))
		return fr_fail(d, -EINVAL, "leave Threshold= out; then each call is an anomaly",
			"cannot measure calls of %s: %s is a Go program, and a return probe makes it crash",
			s->symbol, s->path);
	/* Attach the return probe first, so that each call that begins at the entry probe also has its end
	   probed. If a call is already running when the probes are attached, the program function_return
	   finds no begin of this call, and ignores its end. */
	add_site(p, "function_return", true, symbol.offset, 0);
	add_site(p, "function_entry", false, symbol.offset, 0);
	return 0;
}

static int plan_marker(
	const struct spec *s, int which, const char *program, struct plan *p, struct fr_diag *d)
{
	_cleanup_free_ struct fr_elf_marker *m = calloc(FR_ELF_MARKERS_MAX, sizeof(*m));
	int n;

	if (!m)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot look up a marker");
	n = fr_elf_find_markers(p->elf, s->provider[which], s->name[which], m, d);
	for (int i = 0; i < n; i++)
		add_site(p, program, false, m[i].offset, m[i].semaphore);
	return FR_MIN(n, 0);
}

static int plan_markers(const struct spec *s, struct plan *p, struct fr_diag *d)
{
	int r;

	if (!s->measures_duration)
		return plan_marker(s, 0, "marker_hit", p, d);
	r = plan_marker(s, 1, "marker_end", p, d);
	return r < 0 ? r : plan_marker(s, 0, "marker_begin", p, d);
}

/* Returns a process in the cgroup at PATH, or in a cgroup at most DEPTH levels below it; 0 if there is
   none. */
static pid_t find_process(const char *path, unsigned depth)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_closedir_ DIR *dir = NULL;
	char below[PATH_MAX];
	struct dirent *e;
	int pid = 0;

	if (snprintf(below, sizeof(below), "%s/cgroup.procs", path) >= (int)sizeof(below))
		return 0;
	f = fopen(below, "re");
	/* In cgroup.procs, the kernel shows a process outside of this pid namespace as 0. */
	while (f && pid <= 0 && fscanf(f, "%d", &pid) == 1)
		;
	if (pid > 0 || depth == 0)
		return pid > 0 ? pid : 0;
	dir = opendir(path);
	while (dir && pid <= 0 && (e = readdir(dir)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
			snprintf(below, sizeof(below), "%s/%s", path, e->d_name) < (int)sizeof(below))
			pid = find_process(below, depth - 1);
	return pid;
}

/* Finds the process whose root directory contains the file, for example a process of the container: the
   process of Pid=, or a process in CGroup=. RET gets the pid of that process. If neither Pid= nor CGroup= is
   set, RET gets 0, because the file is in the root of this process. */
static int find_root_process(const struct fr_trigger_config *config, pid_t *ret, struct fr_diag *d)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char path[PATH_MAX];

	*ret = config->pid;
	if (config->pid || !config->cgroup || !config->cgroup[strspn(config->cgroup, "/")])
		return 0;
	for (size_t i = 0; i < FR_ARRAY_SIZE(roots) && *ret == 0; i++)
		if (snprintf(path, sizeof(path), "%s/%s", roots[i], config->cgroup) < (int)sizeof(path))
			*ret = find_process(path, CGROUP_DEPTH);
	return *ret ? 0
		    : fr_fail(d, -ESRCH,
			      "start a process in the group; then the trigger is armed, for the file in the "
			      "root of that process",
			      "the trigger %s: no process is in the control group %s", config->name,
			      config->cgroup);
}

static int explain_attach(
	const struct spec *s, const struct plan *p, int code, const char *text, struct fr_diag *d)
{
	struct fr_bpf_log_summary v;

	switch (code) {
	case -EPERM:
	case -EACCES:
		return fr_fail(d, code,
			p->pid ? "grant CAP_SYS_ADMIN (flightrecd.service says how) and, for a process of "
				 "another user, CAP_SYS_PTRACE"
			       : "grant CAP_SYS_ADMIN; flightrecd.service says how",
			"not permitted to probe %s", s->path);
	case -ESRCH:
		return fr_fail(d, code, "set Pid= to a process that is running", "there is no process %d",
			(int)p->pid);
	case -EIO:
		return fr_fail(d, code, "copy the program to another file system, and run the copy",
			"the file system of %s does not support probes", s->path);
	case -EINVAL:
	case -EOPNOTSUPP:
	case -ENOTSUPP:
		return fr_fail(d, -EINVAL,
			"probe another instruction; objdump -d shows where each one begins",
			"the kernel cannot probe the instruction at %s of %s",
			s->symbol ? s->symbol : s->name[0], s->path);
	default:
		fr_bpf_log_summarize(text, &v);
		return fr_fail_errno(d, code, v.reason[0] ? v.reason : NULL, "cannot probe %s", s->path);
	}
}

static int attach_site(struct fr_bpf_source *b, const struct spec *s, const struct plan *p,
	const struct site *site, struct fr_diag *d)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = site->semaphore, .retprobe = site->at_return);
	const struct bpf_program *program =
		bpf_object__find_program_by_name(fr_bpf_object_libbpf(b->object), site->program);
	_cleanup_bpf_log_ struct fr_bpf_log log = {0};
	struct bpf_link *link;
	char path[64];

	fr_bpf_log_begin(&log);
	/* Read the probed instruction into the page cache. The kernel reads the instruction when an exec maps
	   the file. If the kernel has to wait for the disk then, ext4 logs a kernel warning (seen: 6.18). */
	(void)!pread(fr_elf_fd(p->elf), path, 16, (off_t)site->offset);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fr_elf_fd(p->elf));
	link = bpf_program__attach_uprobe_opts(program, p->pid ? p->pid : -1, path, site->offset, &opts);
	if (!link)
		return explain_attach(s, p, -errno, log.text, d);
	return fr_bpf_object_keep(b->object, link) < 0
		       ? fr_fail_errno(d, -ENOMEM, NULL, "cannot probe %s", s->path)
		       : 0;
}

/* Selects the programs of the plan. The other programs are not loaded, because some of them need task
   storage. A kernel without BTF has no task storage, and refuses to load these programs. */
static void choose_programs(struct bpf_object *o, const struct plan *p)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, o)
	{
		bool wanted = false;

		for (size_t i = 0; i < p->n; i++)
			wanted |= !strcmp(p->v[i].program, bpf_program__name(program));
		bpf_program__set_autoload(program, wanted);
	}
}

static int check_kernel(const struct spec *s, struct fr_diag *d)
{
	if (access(UPROBE_PMU, F_OK) < 0)
		return fr_fail(d, -EOPNOTSUPP,
			"use a kernel with CONFIG_UPROBE_EVENTS=y; a container must also see " UPROBE_PMU,
			"this kernel has no uprobes");
	if (s->measures_duration && access("/sys/kernel/btf/vmlinux", F_OK) < 0)
		return fr_fail(d, -EOPNOTSUPP,
			"use a kernel with CONFIG_DEBUG_INFO_BTF=y, or leave Threshold= out",
			"this kernel has no BTF, so a program cannot store when a thread began a call");
	return 0;
}

/* Writes "binary:symbol" or "binary:provider:name" as the detail of the causes. */
static void write_detail(const struct spec *s, char ret[static FR_CAUSE_TEXT_SIZE])
{
	const char *file = strrchr(s->path, '/') + 1;

	if (s->symbol)
		snprintf(ret, FR_CAUSE_TEXT_SIZE, "%.60s:%s", file, s->symbol);
	else
		snprintf(ret, FR_CAUSE_TEXT_SIZE, "%.40s:%.40s:%s%s%s", file, s->provider[0], s->name[0],
			s->name[1] ? "," : "", s->name[1] ? s->name[1] : "");
}

static int make_plan(
	const struct fr_trigger_config *config, const struct spec *s, struct plan *p, struct fr_diag *d)
{
	pid_t root;
	int r = check_kernel(s, d);

	if (r == 0)
		r = find_root_process(config, &root, d);
	if (r == 0)
		r = fr_elf_open(s->path, root, FR_ELF_DEBUG_ROOT, &p->elf, d);
	if (r < 0)
		return r;
	p->pid = config->pid;
	return s->symbol ? plan_function(s, p, d) : plan_markers(s, p, d);
}

/* Loads the programs of the plan, and attaches them. */
static int carry_out_plan(
	struct fr_bpf_source *b, const struct spec *s, const struct plan *p, struct fr_diag *d)
{
	struct fr_bpf_source_object object = {.label = "the program for Function= and USDT=",
		.unit = s->measures_duration ? FR_CAUSE_NS : FR_CAUSE_NONE};
	int r;

	object.bytes = function__elf_bytes(&object.n);
	r = fr_bpf_source_init(b, &object, d);
	if (r < 0)
		return r;
	write_detail(s, b->detail);
	choose_programs(fr_bpf_object_libbpf(b->object), p);
	r = fr_bpf_source_load(b, d);
	for (size_t i = 0; i < p->n && r == 0; i++)
		r = attach_site(b, s, p, &p->v[i], d);
	if (r == 0)
		(void)fstat(fr_elf_fd(p->elf), &b->file);
	return r;
}

static int function_open(struct fr_source *source, struct fr_diag *d)
{
	_cleanup_spec_ struct spec s = {0};
	_cleanup_free_ struct plan *p = calloc(1, sizeof(*p));
	int r = p ? parse_spec(source->config, &s, d) : -ENOMEM;

	if (r == 0)
		r = make_plan(source->config, &s, p, d);
	if (r == 0)
		r = carry_out_plan((struct fr_bpf_source *)source, &s, p, d);
	if (p)
		fr_elf_free(p->elf);
	return r;
}

/* Returns true if another file is now at the path, or if the content of the file has changed. This source
   does not probe the new file or content. */
static bool function_is_stale(const struct fr_source *source)
{
	const struct fr_bpf_source *b = (const struct fr_bpf_source *)source;
	_cleanup_spec_ struct spec s = {0};
	struct stat now;
	pid_t root;

	return parse_spec(source->config, &s, NULL) == 0 &&
	       find_root_process(source->config, &root, NULL) == 0 &&
	       fr_foreign_stat_cached(root, s.path, &now) == 0 && fr_bpf_source_is_other_file(b, &now);
}

const struct fr_source_class fr_source_function = {
	.name = "function",
	.size = sizeof(struct fr_bpf_source),
	.open = function_open,
	.listen = fr_bpf_source_listen,
	.close = fr_bpf_source_close,
	.get_stats = fr_bpf_source_get_stats,
	.is_stale = function_is_stale,
	.check = function_check,
};
