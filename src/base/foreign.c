// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/foreign.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

/* Opens the file of AT for reading. AT is an O_PATH descriptor, so the file itself has not been opened yet.
   The file can be a FIFO or a device. */
static int open_regular(int at, struct stat *ret_stat)
{
	char self[64];
	struct stat st;
	int fd;

	fr_thread_assert_may_wait();
	if (fstat(at, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ret_stat)
		*ret_stat = st;
	return fd;
}

/* Returns an O_PATH descriptor of PATH below the directory ROOT, or a negative errno. */
static int find_below(int root, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve};
	int at = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return at < 0 ? -errno : at;
}

static int find_in_root(pid_t pid, const char *path, uint64_t flags, uint64_t resolve)
{
	char root[64] = "/";
	_cleanup_close_ int rootfd = -1;

	if (pid)
		snprintf(root, sizeof(root), "/proc/%d/root", pid);
	rootfd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return rootfd < 0 ? -errno : find_below(rootfd, path, flags, resolve);
}

static int open_in_root(pid_t pid, const char *path, uint64_t flags, struct stat *ret_stat)
{
	_cleanup_close_ int at = find_in_root(pid, path, flags, 0);

	return at < 0 ? at : open_regular(at, ret_stat);
}

int fr_foreign_open_below(int root, const char *path, struct stat *ret_stat)
{
	_cleanup_close_ int at = find_below(root, path, O_NOFOLLOW, 0);

	return at < 0 ? at : open_regular(at, ret_stat);
}

int fr_foreign_open(pid_t pid, const char *path, struct stat *ret_stat)
{
	return open_in_root(pid, path, O_NOFOLLOW, ret_stat);
}

int fr_foreign_open_linked(pid_t pid, const char *path, struct stat *ret_stat)
{
	return open_in_root(pid, path, 0, ret_stat);
}

int fr_foreign_stat_cached(pid_t pid, const char *path, struct stat *ret)
{
	_cleanup_close_ int at = find_in_root(pid, path, 0, RESOLVE_CACHED);

	if (at == -EINVAL && !pid)
		at = find_in_root(pid, path, 0, 0);
	if (at < 0)
		return at;
	return fr_stat_cached(at, ret);
}

int fr_foreign_open_map(pid_t pid, uint64_t start, uint64_t end, struct stat *ret_stat)
{
	char path[96];
	_cleanup_close_ int at = -1;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start,
		(unsigned long long)end);
	at = open(path, O_PATH | O_CLOEXEC);
	return at < 0 ? -errno : open_regular(at, ret_stat);
}
