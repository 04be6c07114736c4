// SPDX-License-Identifier: GPL-2.0-or-later
/* Resolves the CPUs, the tasks with all their threads, or the cgroup of a configuration. */
#include "capture/target.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CPUS_MAX 8192
#define THREADS_MAX (1u << 20)
/* A process can start threads while its threads are being listed, so they are listed several times. Threads
   that start after the last pass inherit the events. */
#define LIST_PASSES 5

static int read_online_cpus(uint8_t *ret_bits, struct fr_diag *d)
{
	char line[4096];
	int r = fr_read_line("/sys/devices/system/cpu/online", line, sizeof(line));

	if (r == 0)
		r = fr_cpulist_parse(line, ret_bits, CPUS_MAX);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot read which CPUs are online") : 0;
}

static int resolve_cpus(struct fr_target *t, const char *list, struct fr_diag *d)
{
	uint8_t online[CPUS_MAX / 8] = {0}, wanted[CPUS_MAX / 8] = {0};
	int r = read_online_cpus(online, d);

	if (r < 0)
		return r;
	if (list) {
		r = fr_cpulist_parse(list, wanted, CPUS_MAX);
		if (r <= 0)
			return fr_fail(d, -EINVAL, "write it as 0-3,8", "\"%s\" is not a list of CPUs", list);
	} else {
		memcpy(wanted, online, sizeof(wanted));
	}
	t->cpus = calloc(CPUS_MAX, sizeof(*t->cpus));
	if (!t->cpus)
		return -ENOMEM;
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!(wanted[cpu / 8] & 1u << cpu % 8))
			continue;
		if (!(online[cpu / 8] & 1u << cpu % 8))
			return fr_fail(d, -ENODEV, "choose from the CPUs in /sys/devices/system/cpu/online",
				"CPU %d is not online", cpu);
		t->cpus[t->n_cpus++] = cpu;
	}
	t->n_online = t->n_cpus;
	for (int cpu = 0; cpu < CPUS_MAX; cpu++)
		if (online[cpu / 8] & ~wanted[cpu / 8] & 1u << cpu % 8)
			t->cpus[t->n_online++] = cpu;
	return 0;
}

static bool has_tid(const struct fr_target *t, pid_t tid)
{
	for (size_t i = t->n_tids; i--;)
		if (t->tids[i] == tid)
			return true;
	return false;
}

/* Adds the threads of PID that are not in T yet to T. Returns the number of added threads or a negative
   errno. */
static int add_threads(struct fr_target *t, pid_t pid)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *e;
	char path[64];
	int added = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		uint64_t tid;
		pid_t *tids;

		if (fr_u64_parse(e->d_name, &tid) < 0 || tid > INT_MAX || has_tid(t, (pid_t)tid))
			continue;
		if (t->n_tids >= THREADS_MAX)
			return -E2BIG;
		tids = reallocarray(t->tids, t->n_tids + 1, sizeof(*tids));
		if (!tids)
			return -ENOMEM;
		t->tids = tids;
		t->tids[t->n_tids++] = (pid_t)tid;
		added++;
	}
	return added;
}

static int resolve_tasks(struct fr_target *t, const struct fr_capture_config *config, struct fr_diag *d)
{
	for (size_t i = 0; i < config->n_pids; i++) {
		int r = add_threads(t, config->pids[i]);

		if (r == -ENOENT)
			return fr_fail(d, -ESRCH, "give the pid of a process that runs",
				"there is no process %d", config->pids[i]);
		for (int pass = 1; r > 0 && pass < LIST_PASSES; pass++)
			r = add_threads(t, config->pids[i]);
		if (r < 0 && r != -ENOENT)
			return fr_fail_errno(
				d, r, NULL, "cannot list the threads of process %d", config->pids[i]);
	}
	return 0;
}

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Tries PATH below each mounted hierarchy that perf can use: cgroup2, and version 1 with perf_event. */
static int open_below_mounts(const char *path)
{
	_cleanup_fclose_ FILE *f = setmntent("/proc/self/mounts", "re");
	char buffer[2 * PATH_MAX], whole[2 * PATH_MAX];
	struct mntent m;
	int fd = -ENOENT;

	while (f && fd < 0 && getmntent_r(f, &m, buffer, sizeof(buffer))) {
		if (strcmp(m.mnt_type, "cgroup2") != 0 &&
			(strcmp(m.mnt_type, "cgroup") != 0 || !hasmntopt(&m, "perf_event")))
			continue;
		if (snprintf(whole, sizeof(whole), "%s/%s", m.mnt_dir, path) < (int)sizeof(whole))
			fd = open_directory(whole);
	}
	return fd;
}

int fr_cgroup_open(const char *path)
{
	int fd = path[0] == '/' ? open_directory(path) : -ENOENT;

	return fd < 0 ? open_below_mounts(path) : fd;
}

int fr_target_init(struct fr_target *t, const struct fr_capture_config *config, struct fr_diag *d)
{
	int r;

	*t = (struct fr_target){.cgroup_fd = -1};
	if (config->cgroup && config->n_pids)
		return fr_fail(d, -EINVAL, "give only one of them",
			"a cgroup and processes cannot be recorded together");
	r = resolve_cpus(t, config->cpus, d);
	if (r == 0)
		r = resolve_tasks(t, config, d);
	if (r == 0 && config->cgroup) {
		t->cgroup_fd = fr_cgroup_open(config->cgroup);
		if (t->cgroup_fd < 0)
			r = fr_fail_errno(d, t->cgroup_fd,
				"give its path below the cgroup mount, like system.slice/nginx.service",
				"cannot open the cgroup %s", config->cgroup);
	}
	if (r < 0)
		fr_target_deinit(t);
	return r;
}

void fr_target_deinit(struct fr_target *t)
{
	free(t->tids);
	free(t->cpus);
	if (t->cgroup_fd >= 0)
		close(t->cgroup_fd);
	*t = (struct fr_target){.cgroup_fd = -1};
}
