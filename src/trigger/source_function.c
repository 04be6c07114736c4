// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Function= and USDT=: uprobes whose programs (src/bpf/function.bpf.c) take the time in the kernel.
 *
 *     Function=PATH:SYMBOL, Threshold=       entry and return    how long it took
 *     Function=PATH:SYMBOL[+0xOFFSET]        that instruction    each passing
 *     USDT=PATH:P:BEGIN,P:END, Threshold=    both markers        how long it was between them
 *     USDT=PATH:P:NAME                       that marker         each passing
 *
 * A probe is attached to the open file that its symbols were read from, by descriptor: no name is looked up
 * twice. With Pid= only that process has the probe, and nobody else pays for it.
 */

#include "trigger/source.h"
#include "base/cleanup.h"
#include "base/foreign.h"
#include "trigger/bpf_log.h"
#include "trigger/bpf_object.h"
#include "trigger/bpf_source.h"
#include "trigger/elf_symbol.h"

#include "function.skel.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UPROBE_PMU "/sys/bus/event_source/devices/uprobe/type"
#define CGROUP_DEPTH 4
#define ENOTSUPP 524 /* of the kernel's own, not in <errno.h>: an instruction that it cannot step over */

/* What the key says; strings point into TEXT. */
struct subject {
	char *text;
	const char *path, *symbol;	   /* symbol: of Function= */
	const char *provider[2], *name[2]; /* of USDT=: begin, end; or one */
	bool timed;
	uint64_t threshold_ns;
};

static void subject_deinit(struct subject *s)
{
	free(s->text);
}
#define _cleanup_subject_ _cleanup_(subject_deinit)

/* Cut the last ":WORD" off TEXT, and return WORD; NULL where there is none. */
static char *cut_last(char *text)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text || !colon[1])
		return NULL;
	*colon = '\0';
	return colon + 1;
}

/* From the right, since a path may have colons and commas. */
static bool parse_markers(struct subject *s)
{
	char *last = strrchr(s->text, ':'), *comma;

	if (!last)
		return false;
	for (comma = last; comma > s->text && *comma != ',' && *comma != '/'; comma--)
		;
	if (*comma == ',') {
		*comma = '\0';
		s->name[1] = cut_last(comma + 1);
		s->provider[1] = comma + 1;
		if (!s->name[1])
			return false;
	}
	s->name[0] = cut_last(s->text);
	s->provider[0] = s->name[0] ? cut_last(s->text) : NULL;
	return s->provider[0] && !strchr(s->name[0], ',');
}

static int parse_threshold(const struct fr_trigger_config *config, struct subject *s, struct fr_diag *d)
{
	s->timed = config->threshold;
	if (s->timed && fr_threshold_parse(config->threshold, FR_CAUSE_NS, &s->threshold_ns) < 0)
		return fr_fail(d, -EINVAL, "it is a time, like Threshold=5ms",
			"the trigger %s: \"%s\" is no threshold of a function", config->name,
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

static int parse(const struct fr_trigger_config *config, struct subject *s, struct fr_diag *d)
{
	bool usdt = config->kind == FR_TRIGGER_USDT;

	s->text = strdup(config->subject ? config->subject : "");
	if (!s->text)
		return -ENOMEM;
	s->path = s->text;
	if (usdt ? !parse_markers(s) : !(s->symbol = cut_last(s->text)))
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

static int check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	_cleanup_subject_ struct subject s = {0};

	return parse(config, &s, d);
}

/* One place for one program. */
struct site {
	const char *program;
	bool at_return;
	uint64_t offset, semaphore;
};

struct plan {
	struct fr_elf *elf;
	pid_t pid; /* only this process has the probes; 0: all */
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
	int r = fr_elf_symbol(p->elf, s->symbol, &symbol, d);

	if (r < 0)
		return r;
	if (!s->timed) {
		add_site(p, "function_hit", false, symbol.offset, 0);
		return 0;
	}
	/* Where the return address is on the stack is only known on entry: elsewhere the kernel would
	   overwrite what is none, and break the program. Go moves its stacks, and finds such an address. */
	if (symbol.into)
		return fr_fail(d, -EINVAL, "leave the offset out, or Threshold=",
			"the time of a function is measured from its entry, not from %s", s->symbol);
	if (fr_elf_is_go(p->elf))
		return fr_fail(d, -EINVAL, "without Threshold= each call of it is an anomaly, which Go bears",
			"%s is a Go program: one that is probed at a return crashes", s->path);
	/* Returns first: a call that is on its way then has no begin, and is not counted. */
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
	n = fr_elf_markers(p->elf, s->provider[which], s->name[which], m, d);
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

/* A process of the cgroup at PATH or below it, whose root is its container's; 0: there is none. */
static pid_t process_in(const char *path, unsigned depth)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_closedir_ DIR *dir = NULL;
	char below[PATH_MAX];
	struct dirent *e;
	int pid = 0;

	if (snprintf(below, sizeof(below), "%s/cgroup.procs", path) >= (int)sizeof(below))
		return 0;
	f = fopen(below, "re");
	/* 0 is one that our pid namespace does not see. */
	while (f && pid <= 0 && fscanf(f, "%d", &pid) == 1)
		;
	if (pid > 0 || depth == 0)
		return pid > 0 ? pid : 0;
	dir = opendir(path);
	while (dir && pid <= 0 && (e = readdir(dir)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
			snprintf(below, sizeof(below), "%s/%s", path, e->d_name) < (int)sizeof(below))
			pid = process_in(below, depth - 1);
	return pid;
}

/* In whose root PATH is: 0 for ours. */
static int choose_root(const struct fr_trigger_config *config, pid_t *ret, struct fr_diag *d)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char path[PATH_MAX];

	*ret = config->pid;
	if (config->pid || !config->cgroup || !config->cgroup[strspn(config->cgroup, "/")])
		return 0;
	for (size_t i = 0; i < FR_ARRAY_SIZE(roots) && *ret == 0; i++)
		if (snprintf(path, sizeof(path), "%s/%s", roots[i], config->cgroup) < (int)sizeof(path))
			*ret = process_in(path, CGROUP_DEPTH);
	return *ret ? 0
		    : fr_fail(d, -ESRCH,
			      "the path is looked up in the root of its first process; it is armed when "
			      "there is one",
			      "the trigger %s: no process is in the control group %s", config->name,
			      config->cgroup);
}

static int explain_attach(
	const struct subject *s, const struct plan *p, int code, const char *text, struct fr_diag *d)
{
	struct fr_bpf_verdict v;

	switch (code) {
	case -EPERM:
	case -EACCES:
		return fr_fail(d, code,
			p->pid ? "it takes CAP_SYS_ADMIN, and CAP_SYS_PTRACE for a process of another user; "
				 "flightrecd.service says how to give it the first"
			       : "it takes CAP_SYS_ADMIN; flightrecd.service says how to give it that",
			"not permitted to probe %s", s->path);
	case -ESRCH:
		return fr_fail(d, code, "give the Pid= of one that runs", "no process %d", (int)p->pid);
	case -EIO:
		return fr_fail(d, code, "copy it to another file system, and run it from there",
			"the file system of %s does not let it be probed", s->path);
	case -EINVAL:
	case -EOPNOTSUPP:
	case -ENOTSUPP:
		return fr_fail(d, -EINVAL, "choose another place: objdump -d shows where instructions begin",
			"the kernel cannot probe the instruction at %s of %s",
			s->symbol ? s->symbol : s->name[0], s->path);
	default:
		fr_bpf_log_verdict(text, &v);
		return fr_fail_errno(d, code, v.reason[0] ? v.reason : NULL, "cannot probe %s", s->path);
	}
}

/* The kernel copies the instruction when the file is first mapped, in the midst of an exec, where reading
   from the disk has ended in a warning of ext4 (6.18): so its pages are in memory. */
static void read_instruction(const struct plan *p, const struct site *site)
{
	char instruction[16];

	(void)!pread(fr_elf_fd(p->elf), instruction, sizeof(instruction), (off_t)site->offset);
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

	read_instruction(p, site);
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

/* Only the programs of the plan: what measures calls needs more of the kernel than what sees them. */
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

static int arm(struct fr_bpf_source *b, const struct subject *s, const struct plan *p, struct fr_diag *d)
{
	int r;

	choose_programs(fr_bpf_object_libbpf(b->object), p);
	r = fr_bpf_source_load(b, d);
	for (size_t i = 0; i < p->n && r == 0; i++)
		r = attach_site(b, s, p, &p->v[i], d);
	if (r < 0)
		fr_bpf_source_deinit(b);
	return r;
}

static int check_kernel(const struct subject *s, struct fr_diag *d)
{
	if (access(UPROBE_PMU, F_OK) < 0)
		return fr_fail(d, -EOPNOTSUPP,
			"CONFIG_UPROBE_EVENTS=y would give it them; a container must see " UPROBE_PMU,
			"this kernel has no uprobes");
	if (s->timed && access("/sys/kernel/btf/vmlinux", F_OK) < 0)
		return fr_fail(d, -EOPNOTSUPP, "CONFIG_DEBUG_INFO_BTF=y would give it one",
			"this kernel has no BTF, without which the time of a call cannot be kept with its "
			"thread");
	return 0;
}

/* Of whose calls a cause tells: "binary:symbol". */
static void describe(const struct subject *s, char ret[static FR_CAUSE_TEXT_SIZE])
{
	const char *file = strrchr(s->path, '/') + 1;

	if (s->symbol)
		snprintf(ret, FR_CAUSE_TEXT_SIZE, "%.60s:%s", file, s->symbol);
	else
		snprintf(ret, FR_CAUSE_TEXT_SIZE, "%.40s:%.40s:%s%s%s", file, s->provider[0], s->name[0],
			s->name[1] ? "," : "", s->name[1] ? s->name[1] : "");
}

static int open_probe(struct fr_bpf_source *b, const struct fr_source_env *env,
	const struct fr_trigger_config *config, void *trigger, const struct subject *s, const struct plan *p,
	struct fr_diag *d)
{
	struct fr_bpf_source_object object = {
		.label = "the probe of functions", .unit = s->timed ? FR_CAUSE_NS : FR_CAUSE_NONE};
	int r;

	object.bytes = function__elf_bytes(&object.n);
	r = fr_bpf_source_init(b, &fr_source_function, env, config, trigger, &object, d);
	if (r < 0)
		return r;
	describe(s, b->detail);
	return arm(b, s, p, d);
}

/* The file that the subject is in, to be freed. */
static int open_file(const struct fr_trigger_config *config, const struct subject *s, struct fr_elf **ret,
	struct fr_diag *d)
{
	pid_t root;
	int r = choose_root(config, &root, d);

	return r == 0 ? fr_elf_open(s->path, root, FR_ELF_DEBUG_ROOT, ret, d) : r;
}

static int make_plan(
	const struct fr_trigger_config *config, const struct subject *s, struct plan *p, struct fr_diag *d)
{
	int r = check_kernel(s, d);

	if (r == 0)
		r = open_file(config, s, &p->elf, d);
	if (r < 0)
		return r;
	p->pid = config->pid;
	return s->symbol ? plan_function(s, p, d) : plan_markers(s, p, d);
}

static int function_open(const struct fr_source_env *env, const struct fr_trigger_config *config,
	void *trigger, struct fr_source **ret, struct fr_diag *d)
{
	_cleanup_subject_ struct subject s = {0};
	struct fr_bpf_source *b = calloc(1, sizeof(*b));
	struct plan *p = calloc(1, sizeof(*p));
	int r = b && p ? parse(config, &s, d) : -ENOMEM;

	if (r == 0)
		r = make_plan(config, &s, p, d);
	if (r == 0)
		r = open_probe(b, env, config, trigger, &s, p, d);
	if (r == 0)
		(void)fstat(fr_elf_fd(p->elf), &b->file);
	if (p)
		fr_elf_free(p->elf);
	free(p);
	if (r < 0) {
		free(b);
		return fr_fail_errno(d, r, NULL, "cannot open the trigger %s", config->name);
	}
	*ret = &b->source;
	return 0;
}

static void function_close(struct fr_source *source)
{
	struct fr_bpf_source *b = (struct fr_bpf_source *)source;

	fr_bpf_source_deinit(b);
	free(b);
}

/* A program that was upgraded runs from another file, and the probes are in the one before. */
static bool function_is_stale(const struct fr_source *source)
{
	const struct fr_bpf_source *b = (const struct fr_bpf_source *)source;
	_cleanup_subject_ struct subject s = {0};
	struct stat now;
	pid_t root;

	return parse(source->config, &s, NULL) == 0 && choose_root(source->config, &root, NULL) == 0 &&
	       fr_foreign_stat_cached(root, s.path, &now) == 0 && fr_bpf_source_file_changed(b, &now);
}

const struct fr_source_class fr_source_function = {
	.name = "function",
	.open = function_open,
	.listen = fr_bpf_source_listen,
	.close = function_close,
	.stats = fr_bpf_source_stats,
	.is_stale = function_is_stale,
	.check = check,
};
