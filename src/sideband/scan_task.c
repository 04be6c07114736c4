// SPDX-License-Identifier: GPL-2.0-or-later
/* One process of /proc: its name, parent, namespaces, maps and threads. */
#include "sideband/scan_internal.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

struct task_stat {
	char comm[64];
	size_t comm_len;
	pid_t ppid;
	long threads;
	bool has_memory; /* false for kernel threads and zombies */
};

/* Reads the file NAME in DIRFD into RET as a string, truncated to fit in SIZE bytes. Returns its length or a
   negative errno. */
static ssize_t read_small(int dirfd, const char *name, char *ret, size_t size)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = fr_pread_all(fd, ret, size - 1, 0);
	if (n >= 0)
		ret[n] = '\0';
	return n;
}

/* Parses proc_pid_stat(5). The name is in parentheses and can contain parentheses, so it ends at the last
   ")". */
static int parse_stat(const char *text, struct task_stat *ret)
{
	const char *open = strchr(text, '(');
	const char *close = strrchr(text, ')');
	unsigned long vsize;

	if (!open || !close || close < open || (size_t)(close - open) > sizeof(ret->comm))
		return -EINVAL;
	ret->comm_len = (size_t)(close - open - 1);
	memcpy(ret->comm, open + 1, ret->comm_len);
	if (sscanf(close + 1,
		    " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %*s %lu",
		    &ret->ppid, &ret->threads, &vsize) != 3)
		return -EINVAL;
	ret->has_memory = vsize > 0;
	return 0;
}

/* The order is that of the record in linux/perf_event.h: NET, UTS, IPC, PID, USER, MNT, CGROUP. */
static int put_namespaces(struct scan *s, pid_t pid, int pid_fd)
{
	static const char *const names[] = {
		"ns/net", "ns/uts", "ns/ipc", "ns/pid", "ns/user", "ns/mnt", "ns/cgroup"};
	uint64_t links[FR_ARRAY_SIZE(names)][2] = {0};
	struct stat st;

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		if (fstatat(pid_fd, names[i], &st, 0) < 0) {
			if (errno == ENOENT && i > 0)
				continue; /* this kernel does not have this kind of namespace */
			return 0;
		}
		links[i][0] = st.st_dev;
		links[i][1] = st.st_ino;
	}
	return scan_put(s, fr_emit_namespaces(&s->emit, pid, pid, links, FR_ARRAY_SIZE(names)));
}

static int put_thread(struct scan *s, pid_t pid, int task_fd, const char *name)
{
	char path[NAME_MAX + sizeof("/comm")], comm[64];
	uint64_t tid;
	ssize_t n;
	int r;

	if (fr_u64_parse(name, &tid) < 0 || tid > INT_MAX || (pid_t)tid == pid)
		return 0;
	snprintf(path, sizeof(path), "%s/comm", name);
	n = read_small(task_fd, path, comm, sizeof(comm));
	if (n <= 0)
		return 0;
	r = scan_put(s, fr_emit_task(&s->emit, pid, (pid_t)tid, pid, pid));
	/* The last byte of the file is a newline. */
	return r < 0 ? r : scan_put(s, fr_emit_comm(&s->emit, pid, (pid_t)tid, comm, (size_t)n - 1));
}

static int put_threads(struct scan *s, pid_t pid, int pid_fd)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(pid_fd, "task");
	struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOMEM ? -ENOMEM : 0; /* the process has exited */
	while (r == 0 && (e = readdir(dir)))
		r = put_thread(s, pid, dirfd(dir), e->d_name);
	return r;
}

int scan_process(struct scan *s, pid_t pid)
{
	_cleanup_close_ int pid_fd = -1;
	struct task_stat t = {0};
	char text[1024], name[16];
	int r;

	snprintf(name, sizeof(name), "%d", pid);
	pid_fd = openat(s->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pid_fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
	if (read_small(pid_fd, "stat", text, sizeof(text)) <= 0 || parse_stat(text, &t) < 0)
		return 0;
	r = scan_put(s, fr_emit_task(&s->emit, pid, pid, t.ppid, t.ppid));
	if (r == 0)
		r = scan_put(s, fr_emit_comm(&s->emit, pid, pid, t.comm, t.comm_len));
	if (r == 0)
		r = put_namespaces(s, pid, pid_fd);
	if (r == 0 && t.has_memory)
		r = scan_maps(s, pid, pid_fd);
	if (r == 0 && t.threads > 1)
		r = put_threads(s, pid, pid_fd);
	return r;
}
