// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Function= and USDT=: uprobes whose programs (src/bpf/function.bpf.c) measure the time in the kernel.
 *
 *     Function=PATH:SYMBOL, Threshold=       entry and return    how long the call took
 *     Function=PATH:SYMBOL[+0xOFFSET]        that instruction    each passing
 *     USDT=PATH:P:BEGIN,P:END, Threshold=    both markers        the time between them
 *     USDT=PATH:P:NAME                       that marker         each passing
 *
 * A probe is attached, by descriptor, to the file that the symbols were read from. With Pid= only that
 * process has the probe, and other processes do not pay for it.
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
#define ENOTSUPP 524 /* internal to the kernel: it cannot single-step the instruction */

/* The parsed key; the strings point into TEXT. */
struct subject {
	char *text;
	const char *path, *symbol;	   /* symbol: Function= only */
	const char *provider[2], *name[2]; /* USDT= only: begin and end, or one marker */
	bool timed;
	uint64_t threshold_ns;
};

static void subject_deinit(struct subject *s)
{
	free(s->text);
}
#define _cleanup_subject_ _cleanup_(subject_deinit)

/* Removes the last ":WORD" from TEXT and returns WORD, or NULL if there is none. */
static char *split_last(char *text)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text || !colon[1])
		return NULL;
	*colon = '\0';
	return colon + 1;
}

/* Parses from the right, since a path may contain colons and commas. */
static bool parse_markers(struct subject *s)
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

static int parse_threshold(const struct fr_trigger_config *config, struct subject *s, struct fr_diag *d)
{
	s->timed = config->threshold;
	if (s->timed && fr_threshold_parse(config->threshold, FR_CAUSE_NS, &s->threshold_ns) < 0)
		return fr_fail(d, -EINVAL, "give a time, like Threshold=5ms",
			"the trigger %s: \"%s\" is not a threshold of a function", config->name,
			config->threshold);
	if (s->provider[0] && !s->name[1] && s->timed)
		return fr_fail(d, -EINVAL,
			"name the marker of the end as well (provider:begin,provider:end), "
			"or leave Threshold= out",
			"the trigger %s: there is no time to measure at one marker", config->name);
	if (s->name[1] && !s->timed)
		return fr_fail(d, -EINVAL, "say how long is too long: Threshold=5ms",
			"the trigger %s: the time between two markers needs a Threshold=", config->name);
	return 0;
}

static int parse_subject(const struct fr_trigger_config *config, struct subject *s, struct fr_diag *d)
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
		return fr_fail(d, -EINVAL, "the path must begin with /",
			"the trigger %s: not an absolute path: %s", config->name, s->path);
	return parse_threshold(config, s, d);
}

static int function_check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	_cleanup_subject_ struct subject s = {0};

	return parse_subject(config, &s, d);
}

/* A place to attach one program to. */
struct site {
	const char *program;
	bool at_return;
	uint64_t offset, semaphore;
};

struct plan {
	struct fr_elf *elf;
	pid_t pid; /* the only process that has the probes; 0: all */
	struct site v[2 * FR_ELF_MARKERS_MAX];
	size_t n;
};

static void add_site(struct plan *p, const char *program, bool at_return, uint64_t offset, uint64_t semaphore)
{
	p->v[p->n++] = (struct site){program, at_return, offset, semaphore};
}

static int plan_function(const struct subject *s, struct plan *p, struct fr_diag *d)
{
	struct fr_elf_symbol symbol;
	int r = fr_elf_find_symbol(p->elf, s->symbol, &symbol, d);

	if (r < 0)
		return r;
	if (!s->timed) {
		add_site(p, "function_hit", false, symbol.offset, 0);
		return 0;
	}
	/* The kernel replaces the return address on the stack, and knows its place only at the entry. Go
	   moves its stacks, and crashes when it finds such an address. */
	if (symbol.into)
		return fr_fail(d, -EINVAL, "leave the offset out, or Threshold=",
			"the time of a function is measured from its entry, not from %s", s->symbol);
	if (fr_elf_is_go(p->elf))
		return fr_fail(d, -EINVAL, "leave Threshold= out: then each call of it is an anomaly",
			"%s is a Go program: it would crash if the return of a function were probed",
			s->path);
	/* Returns come first, so that a call that runs meanwhile has no begin and is not counted. */
	add_site(p, "function_return", true, symbol.offset, 0);
	add_site(p, "function_entry", false, symbol.offset, 0);
	return 0;
}

static int plan_marker(
	const struct subject *s, int which, const char *program, struct plan *p, struct fr_diag *d)
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

static int plan_markers(const struct subject *s, struct plan *p, struct fr_diag *d)
{
	int r;

	if (!s->timed)
		return plan_marker(s, 0, "marker_hit", p, d);
	r = plan_marker(s, 1, "marker_end", p, d);
	return r < 0 ? r : plan_marker(s, 0, "marker_begin", p, d);
}

/* Finds a process of the cgroup at PATH or below it. Its root is that of the container. 0: there is none. */
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
	/* 0 stands for a process outside of this pid namespace. */
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

/* Chooses the process whose root PATH is in; 0: our own root. */
static int choose_root(const struct fr_trigger_config *config, pid_t *ret, struct fr_diag *d)
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
			      "the path is in the root of the first process of that group; the trigger is "
			      "armed "
			      "when there is one",
			      "the trigger %s: no process is in the control group %s", config->name,
			      config->cgroup);
}

static int explain_attach(
	const struct subject *s, const struct plan *p, int code, const char *text, struct fr_diag *d)
{
	struct fr_bpf_log_summary v;

	switch (code) {
	case -EPERM:
	case -EACCES:
		return fr_fail(d, code,
			p->pid ? "this needs CAP_SYS_ADMIN, and CAP_SYS_PTRACE for a process of another "
				 "user; "
				 "flightrecd.service says how to grant the first"
			       : "this needs CAP_SYS_ADMIN; flightrecd.service says how to grant it",
			"not permitted to probe %s", s->path);
	case -ESRCH:
		return fr_fail(
			d, code, "give the Pid= of one that runs", "there is no process %d", (int)p->pid);
	case -EIO:
		return fr_fail(d, code, "copy it to another file system, and run it from there",
			"the file system of %s does not support probes", s->path);
	case -EINVAL:
	case -EOPNOTSUPP:
	case -ENOTSUPP:
		return fr_fail(d, -EINVAL, "choose another place: objdump -d shows where instructions begin",
			"the kernel cannot probe the instruction at %s of %s",
			s->symbol ? s->symbol : s->name[0], s->path);
	default:
		fr_bpf_log_summarize(text, &v);
		return fr_fail_errno(d, code, v.reason[0] ? v.reason : NULL, "cannot probe %s", s->path);
	}
}

static int attach_site(struct fr_bpf_source *b, const struct subject *s, const struct plan *p,
	const struct site *site, struct fr_diag *d)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = site->semaphore, .retprobe = site->at_return);
	const struct bpf_program *program =
		bpf_object__find_program_by_name(fr_bpf_object_libbpf(b->object), site->program);
	struct fr_bpf_log log = {0};
	struct bpf_link *link;
	char path[64];
	int r = 0;

	/* Read the instruction into the page cache. The kernel reads it when the file is first mapped, during
	   an exec; if it had to come from the disk, ext4 warned (seen: 6.18). */
	(void)!pread(fr_elf_fd(p->elf), path, 16, (off_t)site->offset);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fr_elf_fd(p->elf));
	fr_bpf_log_begin(&log);
	link = bpf_program__attach_uprobe_opts(program, p->pid ? p->pid : -1, path, site->offset, &opts);
	if (!link)
		r = explain_attach(s, p, -errno, log.text, d);
	fr_bpf_log_end(&log);
	fr_bpf_log_deinit(&log);
	if (r == 0 && fr_bpf_object_keep(b->object, link) < 0)
		r = fr_fail_errno(d, -ENOMEM, NULL, "cannot probe %s", s->path);
	return r;
}

/* Loads only the programs of the plan. Those that measure calls need more of the kernel than the others. */
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

static int load_and_attach(
	struct fr_bpf_source *b, const struct subject *s, const struct plan *p, struct fr_diag *d)
{
	int r;

	choose_programs(fr_bpf_object_libbpf(b->object), p);
	r = fr_bpf_source_load(b, d);
	for (size_t i = 0; i < p->n && r == 0; i++)
		r = attach_site(b, s, p, &p->v[i], d);
	return r;
}

static int check_kernel(const struct subject *s, struct fr_diag *d)
{
	if (access(UPROBE_PMU, F_OK) < 0)
		return fr_fail(d, -EOPNOTSUPP,
			"it needs CONFIG_UPROBE_EVENTS=y; a container must see " UPROBE_PMU,
			"this kernel has no uprobes");
	if (s->timed && access("/sys/kernel/btf/vmlinux", F_OK) < 0)
		return fr_fail(d, -EOPNOTSUPP, "it needs CONFIG_DEBUG_INFO_BTF=y",
			"this kernel has no BTF, so the time of a call cannot be stored with its thread");
	return 0;
}

/* Writes "binary:symbol" or "binary:provider:name" as the detail of the causes. */
static void describe(const struct subject *s, char ret[static FR_CAUSE_TEXT_SIZE])
{
	const char *file = strrchr(s->path, '/') + 1;

	if (s->symbol)
		snprintf(ret, FR_CAUSE_TEXT_SIZE, "%.60s:%s", file, s->symbol);
	else
		snprintf(ret, FR_CAUSE_TEXT_SIZE, "%.40s:%.40s:%s%s%s", file, s->provider[0], s->name[0],
			s->name[1] ? "," : "", s->name[1] ? s->name[1] : "");
}

static int make_plan(
	const struct fr_trigger_config *config, const struct subject *s, struct plan *p, struct fr_diag *d)
{
	pid_t root;
	int r = check_kernel(s, d);

	if (r == 0)
		r = choose_root(config, &root, d);
	if (r == 0)
		r = fr_elf_open(s->path, root, FR_ELF_DEBUG_ROOT, &p->elf, d);
	if (r < 0)
		return r;
	p->pid = config->pid;
	return s->symbol ? plan_function(s, p, d) : plan_markers(s, p, d);
}

static int open_plan(
	struct fr_bpf_source *b, const struct subject *s, const struct plan *p, struct fr_diag *d)
{
	struct fr_bpf_source_object object = {
		.label = "the probe of functions", .unit = s->timed ? FR_CAUSE_NS : FR_CAUSE_NONE};
	int r;

	object.bytes = function__elf_bytes(&object.n);
	r = fr_bpf_source_init(b, &object, d);
	if (r == 0) {
		describe(s, b->detail);
		r = load_and_attach(b, s, p, d);
	}
	if (r == 0)
		(void)fstat(fr_elf_fd(p->elf), &b->file);
	return r;
}

static int function_open(struct fr_source *source, struct fr_diag *d)
{
	_cleanup_subject_ struct subject s = {0};
	_cleanup_free_ struct plan *p = calloc(1, sizeof(*p));
	int r = p ? parse_subject(source->config, &s, d) : -ENOMEM;

	if (r == 0)
		r = make_plan(source->config, &s, p, d);
	if (r == 0)
		r = open_plan((struct fr_bpf_source *)source, &s, p, d);
	if (p)
		fr_elf_free(p->elf);
	return r;
}

/* True: the program was upgraded, and its new file has no probes. */
static bool function_is_stale(const struct fr_source *source)
{
	const struct fr_bpf_source *b = (const struct fr_bpf_source *)source;
	_cleanup_subject_ struct subject s = {0};
	struct stat now;
	pid_t root;

	return parse_subject(source->config, &s, NULL) == 0 &&
	       choose_root(source->config, &root, NULL) == 0 &&
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
