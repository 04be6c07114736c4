// SPDX-License-Identifier: GPL-2.0-or-later
/* Copies a dump, as a whole or not at all. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK (1u << 20)

static bool is_stdout(const char *path)
{
	return !strcmp(path, "-");
}

/* Opens the directory of PATH. *RET_NAME becomes the last part of PATH, borrowed. Returns the descriptor, or
   a negative errno, with a message in D. */
static int open_directory(const char *path, const char **ret_name, struct fr_diag *d)
{
	_cleanup_free_ char *copy = strdup(path);
	const char *slash = strrchr(path, '/');
	int fd;

	if (!copy)
		return -ENOMEM;
	*ret_name = slash ? slash + 1 : path;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fr_fail_errno(
			d, -errno, "name a file in a directory that exists", "cannot write %s", path);
	return fd;
}

int ctl_copy_check(const char *path, struct fr_diag *d)
{
	_cleanup_close_ int dirfd = -1;
	const char *name;
	struct stat st;

	if (is_stdout(path))
		return isatty(STDOUT_FILENO)
			       ? fr_fail(d, -EINVAL, "name a file, or pipe the dump to another program",
					 "--output: a dump cannot be shown on a terminal")
			       : 0;
	dirfd = open_directory(path, &name, d);
	if (dirfd < 0)
		return dirfd;
	/* The copy must not replace anything but a regular file: not a device like /dev/null, for example. */
	if (!*name || (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode)))
		return fr_fail(d, -EINVAL, "name an ordinary file, or a new one",
			"--output: %s is not an ordinary file", path);
	if (faccessat(dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return fr_fail_errno(d, -errno, "name a file in a directory that you may write to",
			"cannot write %s", path);
	return 0;
}

/* Returns whether one of the blocked signals in SET is pending. */
static bool is_interrupted(const sigset_t *set)
{
	sigset_t pending, both;

	return sigpending(&pending) == 0 && sigandset(&both, set, &pending) == 0 && !sigisemptyset(&both);
}

/* Copies all data. If a signal of INTERRUPTIONS (may be NULL) is pending, the copy ends after the current
   block. Returns 0; -EINTR if a signal ended the copy; or another negative errno. */
static int copy_data(int from, int to, const sigset_t *interruptions)
{
	_cleanup_free_ char *block = malloc(BLOCK);
	ssize_t n;
	int r = block ? 0 : -ENOMEM;

	while (r == 0 && (n = read(from, block, BLOCK)) != 0) {
		r = n < 0 ? -errno : fr_write_all(to, block, (size_t)n);
		if (r == 0 && interruptions && is_interrupted(interruptions))
			r = -EINTR;
	}
	return r;
}

static int copy_to_name(int from, int dirfd, const char *name, const sigset_t *interruptions)
{
	char tmp[NAME_MAX + 1];
	_cleanup_close_ int fd = fr_tmp_create(dirfd, name, 0600, tmp, sizeof(tmp));
	int r;

	if (fd < 0)
		return fd;
	r = copy_data(from, fd, interruptions);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dirfd, tmp, 0);
	return r;
}

/* Copies to a file. SIGINT, SIGTERM and SIGHUP are blocked until the temporary file has been renamed or
   removed. So these signals cannot leave a temporary file. */
static int copy_to_path(int from, const char *path, struct fr_diag *d)
{
	_cleanup_close_ int dirfd = -1;
	sigset_t interruptions, before;
	const char *name;
	int r;

	dirfd = open_directory(path, &name, d);
	if (dirfd < 0)
		return dirfd;
	sigemptyset(&interruptions);
	sigaddset(&interruptions, SIGINT);
	sigaddset(&interruptions, SIGTERM);
	sigaddset(&interruptions, SIGHUP);
	sigprocmask(SIG_BLOCK, &interruptions, &before);
	r = copy_to_name(from, dirfd, name, &interruptions);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int ctl_copy(const char *dump, const char *path, struct fr_diag *d)
{
	_cleanup_close_ int from = open(dump, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r;

	if (from < 0)
		return fr_fail_errno(d, -errno,
			errno == ENOENT
				? "raise MaxUse= or MaxFiles=, and dump again: the limits have already "
				  "removed the dump"
				: "run this command as root or as a member of the recorder's group",
			"cannot read %s for a copy", dump);
	/* For a copy to standard output, signals are not blocked: there is no temporary file to remove, and a
	   signal has to end a write that waits for ever. */
	r = is_stdout(path) ? copy_data(from, STDOUT_FILENO, NULL) : copy_to_path(from, path, d);
	if (r < 0) {
		char hint[256];

		snprintf(hint, sizeof(hint), "copy the dump from %.200s, where it is complete", dump);
		return fr_fail_errno(d, r, hint, "cannot write %s", path);
	}
	return 0;
}
