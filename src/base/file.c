// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/file.h"
#include "base/cleanup.h"
#include "base/owner.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Writes at AT, or at the file position if AT is -1. */
static int write_all(int fd, const char *p, size_t len, off_t at)
{
	while (len > 0) {
		ssize_t n = at < 0 ? write(fd, p, len) : pwrite(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		at += at < 0 ? 0 : n;
		len -= (size_t)n;
	}
	return 0;
}

int fr_write_all(int fd, const void *data, size_t len)
{
	return write_all(fd, data, len, -1);
}

int fr_pwrite_all(int fd, const void *data, size_t len, off_t at)
{
	return at < 0 ? -EINVAL : write_all(fd, data, len, at);
}

ssize_t fr_pread_all(int fd, void *data, size_t len, off_t at)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)data + done, len - done, at + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int fr_read_fd(int fd, size_t max, struct fr_buf *ret)
{
	size_t start = ret->len;

	for (;;) {
		ssize_t n;
		int r = fr_buf_reserve(ret, 4096 + 1);

		if (r < 0)
			return r;
		n = read(fd, ret->data + ret->len, ret->cap - ret->len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		ret->len += (size_t)n;
		ret->data[ret->len] = '\0';
		if (ret->len - start > max) {
			ret->len = start;
			return -EFBIG;
		}
		if (n == 0)
			return 0;
	}
}

int fr_read_file(int dirfd, const char *path, size_t max, struct fr_buf *ret)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fr_read_fd(fd, max, ret);
}

int fr_read_line(const char *path, char *ret, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = fr_pread_all(fd, ret, size - 1, 0);
	if (n < 0)
		return (int)n;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return 0;
}

DIR *fr_opendir_at(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		fr_closep(&fd);
	return dir;
}

int fr_directory_make(int dirfd, const char *name, gid_t gid)
{
	_cleanup_close_ int fd = -1;

	if (mkdirat(dirfd, name, 0750) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (gid != (gid_t)-1 && fchown(fd, (uid_t)-1, gid) < 0))
		return -errno;
	return TAKE_FD(fd);
}

void fr_remove_prefixed(int dirfd, const char *prefix)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, prefix, strlen(prefix)))
			(void)unlinkat(dirfd, e->d_name, 0);
}

int fr_tmp_create(int dirfd, const char *name, mode_t mode, char *ret_tmp, size_t tmp_size)
{
	for (int tries = 0; tries < 16; tries++) {
		uint32_t x;
		int fd, n;

		if (getrandom(&x, sizeof(x), 0) != sizeof(x))
			return -EIO;
		n = snprintf(ret_tmp, tmp_size, ".%s.%08x", name, x);
		if (n < 0 || (size_t)n >= tmp_size)
			return -ENAMETOOLONG;
		fd = openat(dirfd, ret_tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

/* Returns 0 or a positive errno. The errno is positive because the rename has succeeded. */
static int sync_directory(int dirfd)
{
	_cleanup_close_ int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? errno : 0;
}

/* The same on a file system without RENAME_NOREPLACE, such as NFS. linkat() fails if there already is a file
   TO, as RENAME_NOREPLACE does. */
static int rename_by_link(int dirfd, const char *from, const char *to)
{
	struct stat st;

	if (linkat(dirfd, from, dirfd, to, 0) == 0)
		return (void)unlinkat(dirfd, from, 0), 0;
	/* EPERM: the kernel refuses a link to a file of another user (fs.protected_hardlinks). In this case,
	   check that there is no file TO, and rename FROM. */
	if (errno != EPERM)
		return -errno;
	if (fstatat(dirfd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(dirfd, from, dirfd, to) < 0 ? -errno : 0;
}

int fr_rename_to_new(int dirfd, const char *from, const char *to)
{
	const int r = renameat2(dirfd, from, dirfd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;

	return r == -EINVAL ? rename_by_link(dirfd, from, to) : r;
}

int fr_tmp_publish(int dirfd, const char *tmp, const char *name)
{
	int r;

	fr_thread_assert_may_wait();
	r = fr_rename_to_new(dirfd, tmp, name);
	return r < 0 ? r : sync_directory(dirfd);
}

int fr_file_replace(int dirfd, const char *name, mode_t mode, gid_t gid, const void *data, size_t len)
{
	char tmp[NAME_MAX + 1];
	_cleanup_close_ int fd = fr_tmp_create(dirfd, name, mode, tmp, sizeof(tmp));
	int r;

	fr_thread_assert_may_wait();
	if (fd < 0)
		return fd;
	r = fr_write_all(fd, data, len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0)
		(void)fr_owner_give(fd, gid);
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dirfd, tmp, 0);
		return r;
	}
	return sync_directory(dirfd);
}

bool fr_file_is_at(int fd, int dirfd, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(dirfd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool fr_directory_is_at(int dirfd, const char *path)
{
	struct stat a, b;

	return fstat(dirfd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
	       a.st_nlink > 0;
}

int fr_directory_follow(int dirfd, const char *path)
{
	_cleanup_close_ int fd = -1;

	if (fr_directory_is_at(dirfd, path))
		return 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0 || dup3(fd, dirfd, O_CLOEXEC) < 0)
		return -errno;
	return 1;
}

void fr_directory_name(int dirfd, char *ret, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	if (dirfd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/self/cwd");
	n = readlink(link, ret, size - 1);
	if (n < 0)
		snprintf(ret, size, "the directory");
	else
		ret[n] = '\0';
}

int fr_stat_cached(int fd, struct stat *ret)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_SIZE | STATX_MTIME, &x) < 0)
		return -errno;
	*ret = (struct stat){
		.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.st_ino = x.stx_ino,
		.st_size = (off_t)x.stx_size,
		.st_mtim = {x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec},
	};
	return 0;
}

void fr_file_limit_raise(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}
