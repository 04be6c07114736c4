// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/trusted.h"
#include "base/cleanup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#define INITIAL_USERNS 0xeffffffdu /* PROC_USER_INIT_INO of the kernel */

static int open_proc(pid_t pid, const char *name)
{
	char path[64] = "/proc/self", *end = path + sizeof("/proc/self") - 1;

	if (pid)
		end = path + snprintf(path, sizeof(path), "/proc/%d", pid);
	snprintf(end, (size_t)(path + sizeof(path) - end), "/%s", name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Returns whether only root can mount file systems where PID is. */
static bool is_in_roots_namespace(pid_t pid)
{
	_cleanup_close_ int mounts = open_proc(pid, "ns/mnt");
	_cleanup_close_ int owner = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
	struct stat st;

	return owner >= 0 && fstat(owner, &st) == 0 && st.st_ino == INITIAL_USERNS;
}

/* Returns whether the mount of FD is one of those in the mount namespace of PID. PID can also have opened a
   file in the namespace of another process, by /proc/OTHER/root. */
static bool has_mount(pid_t pid, int fd)
{
	const int info = open_proc(pid, "mountinfo");
	_cleanup_fclose_ FILE *f = info < 0 ? NULL : fdopen(info, "r");
	_cleanup_free_ char *line = NULL;
	struct statx sx = {0};
	size_t size = 0;
	bool found = false;

	if (!f || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &sx) < 0 || !(sx.stx_mask & STATX_MNT_ID))
		return false;
	while (!found && getline(&line, &size, f) > 0)
		found = strtoull(line, NULL, 10) == sx.stx_mnt_id;
	return found;
}

/* A user can mount an overlay in a user namespace of his own, and it shows the owners that the file system
   below claims, such as one of FUSE. */
static bool is_overlay_trusted(pid_t pid, int fd)
{
	return is_in_roots_namespace(pid) && has_mount(pid, fd);
}

bool fr_is_trusted_file(pid_t pid, int fd)
{
	struct stat st;
	struct statfs fs;

	/* In a file with an access control list, the bits of the group are those of all users in the list. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != 0 ||
		st.st_mode & (S_IWGRP | S_IWOTH) || fstatfs(fd, &fs) < 0)
		return false;
	/* A user who mounts the image of a disk must do it with nosuid. Files in it can have any owner. */
	if (fs.f_type == FUSE_SUPER_MAGIC || fs.f_flags & ST_NOSUID)
		return false;
	return fs.f_type != OVERLAYFS_SUPER_MAGIC || is_overlay_trusted(pid, fd);
}
