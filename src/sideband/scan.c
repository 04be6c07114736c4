// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/scan_internal.h"
#include "base/capability.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <linux/capability.h>
#include <mntent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CGROUPS_MAX 16384

int scan_put(struct scan *s, int r)
{
	if (r == 0)
		r = s->put(s->ctx, (const struct perf_event_header *)s->record.data);
	s->record.len = 0;
	return r < 0 ? r : 0;
}

/* The id of a cgroup is the inode number of its directory. */
int scan_cgroups(struct scan *s, const char *root)
{
	char *roots[] = {(char *)root, NULL};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT | FTS_XDEV, NULL);
	const FTSENT *e;
	unsigned n = 0;
	int r = 0;

	if (!tree)
		return -errno;
	while (r == 0 && n < CGROUPS_MAX && (e = fts_read(tree))) {
		const char *path = e->fts_path + strlen(root);

		if (e->fts_info != FTS_D)
			continue;
		path = path[0] ? path : "/";
		r = scan_put(s, fr_emit_cgroup(&s->emit, e->fts_ino, path, strlen(path)));
		n++;
	}
	fts_close(tree);
	return r;
}

static int scan_cgroup_mount(struct scan *s)
{
	_cleanup_fclose_ FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent m;
	char text[3 * PATH_MAX];

	while (f && getmntent_r(f, &m, text, sizeof(text)))
		if (!strcmp(m.mnt_type, "cgroup2"))
			return scan_cgroups(s, m.mnt_dir);
	return 0;
}

static int scan_kernel(struct scan *s, const struct fr_scan_config *config)
{
	_cleanup_fclose_ FILE *kallsyms = fopen("/proc/kallsyms", "re");
	int hidden, r;

	hidden = kallsyms ? scan_kallsyms(s, kallsyms) : 1;
	if (hidden < 0)
		return hidden;
	r = fr_scan_modules(config, NULL, s->put, s->ctx);
	if (r == 0)
		r = scan_cgroup_mount(s);
	return r < 0 ? r : hidden;
}

static int scan_all_tasks(struct scan *s)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	struct dirent *e;
	struct stat st;
	uint64_t pid;
	int r = 0;

	if (!dir)
		return -errno;
	/* Each pid namespace has a process 1. If we cannot stat() a file of this process, /proc hides
	   processes from us. access() would not show that: it ignores our capabilities. */
	s->unseen.processes = !s->may_trace && fstatat(s->proc_fd, "1/comm", &st, 0) < 0;
	while (r == 0 && (e = readdir(dir)))
		if (fr_u64_parse(e->d_name, &pid) == 0 && pid <= INT_MAX)
			r = scan_process(s, (pid_t)pid);
	return r;
}

static int scan_kernel_and_tasks(struct scan *s, const struct fr_scan_config *c)
{
	int hidden = c->kernel ? scan_kernel(s, c) : 0;
	int r = hidden < 0 ? hidden : 0;

	/* With CAP_SYS_PTRACE, only a security module can hide a process. Such a process does not count as
	   hidden. */
	s->may_trace = fr_has_capability(CAP_SYS_PTRACE);
	if (r == 0 && c->n_pids == 0)
		r = scan_all_tasks(s);
	for (size_t i = 0; i < c->n_pids && r == 0; i++)
		r = scan_process(s, c->pids[i]);
	return r < 0 ? r : hidden;
}

int fr_scan(const struct fr_scan_config *config, fr_scan_put put, void *ctx, struct fr_diag *d)
{
	struct scan s = {.put = put, .ctx = ctx, .proc_fd = -1};
	int r;

	fr_thread_assert_may_wait();
	s.emit = (struct fr_emit){.to = &s.record, .time_ns = config->time_ns, .id = config->id};
	s.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s.proc_fd < 0)
		return fr_fail_errno(d, -errno, "Mount proc on /proc.", "cannot open /proc");
	s.build_ids = fr_build_id_cache_new();
	r = s.build_ids ? scan_kernel_and_tasks(&s, config) : -ENOMEM;
	if (config->unseen)
		*config->unseen = s.unseen;
	fr_build_id_cache_free(s.build_ids);
	free(s.line);
	fr_buf_deinit(&s.record);
	close(s.proc_fd);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot scan the running processes") : r;
}
