// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/auxfile_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TRIES 16
/* The names of temporary files begin with this prefix. An instance that was killed can leave temporary
   files. */
#define TMP_PREFIX "." FR_AUXFILE_NAME "."

/* Describes a record lock of fcntl(). It does not keep other recorders out, because flock() does that. It
   only shows our pid to other recorders. */
static struct flock owner_lock(void)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

static int fail_busy(int dirfd, int fd, struct fr_diag *d)
{
	static const char hint[] = "Stop the other one, or choose another directory with -o.";
	struct flock l = owner_lock();
	char dir[PATH_MAX];

	fr_directory_name(dirfd, dir, sizeof(dir));
	if (fd >= 0 && fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK && l.l_pid > 0)
		return fr_fail(
			d, -EBUSY, hint, "another flightrec records to %s (pid %d)", dir, (int)l.l_pid);
	return fr_fail(d, -EBUSY, hint, "another flightrec records to %s", dir);
}

static int fail_open(int dirfd, int code, struct fr_diag *d)
{
	const char *hint = "Check that the directory exists and may be written by this user.";
	char dir[PATH_MAX];

	if (code == -ENOSPC || code == -EDQUOT)
		hint = "Free some space, or choose another directory with -o.";
	fr_directory_name(dirfd, dir, sizeof(dir));
	return fr_fail_errno(d, code, hint, "cannot write %s/" FR_AUXFILE_NAME, dir);
}

bool fr_auxfile_is_displaced(const struct fr_auxfile *a)
{
	struct stat st;

	return fstat(a->dirfd, &st) == 0 && st.st_nlink > 0 &&
	       !fr_file_is_at(a->fd, a->dirfd, FR_AUXFILE_NAME);
}

static int rename_old_to_stamp(int dirfd, uint64_t realtime_ns)
{
	char stamp[FR_STAMP_SIZE], name[sizeof(FR_AUXFILE_NAME) + FR_STAMP_SIZE];
	int r = -EEXIST;

	for (int i = 0; i < 1000 && r == -EEXIST; i++) {
		fr_stamp_format(realtime_ns + (uint64_t)i * FR_NSEC_PER_USEC, stamp);
		snprintf(name, sizeof(name), FR_AUXFILE_NAME ".%s", stamp);
		r = fr_rename_to_new(dirfd, FR_AUXFILE_NAME, name);
	}
	return r;
}

/* FD is the old file, and we have its lock. If the file is not empty and the directory has dumps, renames the
   file, because the dumps need it. Returns 0 if the file was renamed; 1 if a new file can replace it; or a
   negative errno. */
static int put_away(int dirfd, int fd)
{
	struct stat st;
	int samples = auxfile_has_samples(dirfd);

	if (samples < 0)
		return samples;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (samples && st.st_size > 0)
		return rename_old_to_stamp(
			dirfd, (uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec);
	return 1;
}

int auxfile_lock(int dirfd, int fd, struct fr_diag *d)
{
	struct flock l = owner_lock();

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? fail_busy(dirfd, fd, d) : fail_open(dirfd, -errno, d);
	/* If this fails, only the pid is missing in the messages of other processes. */
	(void)fcntl(fd, F_SETLK, &l);
	return 0;
}

/* Opens and locks perf.data.auxiliary. RET gets the descriptor, or -1 if there is no such file. If READ_ONLY
   is true and we are not allowed to write the file, opens it only for reading. Returns 0; 1 if another
   process replaced the file before it was locked, and the caller should try again; or a negative errno, with
   a message in D. */
static int lock_present(int dirfd, bool read_only, int *ret, struct fr_diag *d)
{
	_cleanup_close_ int fd = fr_owner_open(dirfd, FR_AUXFILE_NAME);
	int r;

	if (fd == -EACCES && read_only) {
		fd = openat(
			dirfd, FR_AUXFILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	if (fd < 0 && fd != -ENOENT)
		return fail_open(dirfd, fd, d);
	if (fd >= 0) {
		r = auxfile_lock(dirfd, fd, d);
		if (r < 0)
			return r;
		if (!fr_file_is_at(fd, dirfd, FR_AUXFILE_NAME))
			return 1;
	}
	*ret = TAKE_FD(fd);
	return 0;
}

/* Renames the next file to perf.data.auxiliary. OLD is the file that has this name now, and we have its lock.
   If OLD is -1, there is no such file. If dumps need OLD, it is renamed first. In this case, no file has the
   name perf.data.auxiliary until the second rename, but OLD is complete under its other name. Returns 0 or a
   negative errno. */
static int name_next(struct fr_auxfile *a, int old)
{
	int r = old >= 0 ? put_away(a->dirfd, old) : 0;

	(void)fr_owner_give(a->next.fd, (gid_t)-1);
	if (r > 0)
		return renameat(a->dirfd, a->next.tmp, a->dirfd, FR_AUXFILE_NAME) < 0 ? -errno : 0;
	if (r == 0)
		r = fr_tmp_publish(a->dirfd, a->next.tmp, FR_AUXFILE_NAME);
	return FR_MIN(
		r, 0); /* R > 0: only the sync of the directory failed; that matters only after a power cut */
}

int auxfile_claim_name(struct fr_auxfile *a, struct fr_diag *d)
{
	_cleanup_close_ int old = -1;
	int r = lock_present(a->dirfd, true, &old, d);

	if (r != 0)
		return r;
	r = name_next(a, old);
	/* -EEXIST: another process took the name first. -ENOENT: another process removed all temporary files,
	   also ours. */
	if (r == -EEXIST || r == -ENOENT)
		return 1;
	return r < 0 ? fail_open(a->dirfd, r, d) : 0;
}

int fr_auxfile_open(int dirfd, const void *head, size_t len, struct fr_auxfile **ret, struct fr_diag *d)
{
	_cleanup_free_ struct fr_auxfile *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->fd = -1;
	a->dirfd = dirfd;
	r = fr_auxfile_next_create(a, head, len);
	/* The file must not be empty after a power cut. */
	if (r == 0 && fdatasync(a->next.fd) < 0)
		r = -errno;
	r = r < 0 ? fail_open(dirfd, r, d) : 1;
	for (int i = 0; i < TRIES && r == 1; i++)
		r = auxfile_claim_name(a, d);
	if (r != 0) {
		fr_auxfile_next_abandon(a);
		return r < 0 ? r : fail_busy(dirfd, -1, d);
	}
	auxfile_switch_to_next(a);
	fr_remove_prefixed(dirfd, TMP_PREFIX);
	fr_auxfile_remove_old(dirfd);
	*ret = TAKE_PTR(a);
	return 0;
}

int fr_auxfile_adopt(int dirfd, struct fr_auxfile **ret, struct fr_diag *d)
{
	_cleanup_close_ int fd = -1;
	struct fr_auxfile *a;
	struct stat st;
	int r = 1;

	for (int i = 0; i < TRIES && r == 1; i++)
		r = lock_present(dirfd, false, &fd, d);
	if (r != 0)
		return r < 0 ? r : fail_busy(dirfd, -1, d);
	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) < 0)
		return fail_open(dirfd, -errno, d);
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	fr_remove_prefixed(dirfd, TMP_PREFIX);
	fr_auxfile_remove_old(dirfd);
	(void)fr_owner_give(
		fd, (gid_t)-1); /* the previous instance may have been killed before it could do this */
	a->fd = TAKE_FD(fd);
	a->dirfd = dirfd;
	a->next.fd = -1;
	a->bytes = (uint64_t)st.st_size;
	*ret = a;
	return 0;
}

int fr_auxfile_replace(struct fr_auxfile *a, const void *head, size_t len)
{
	int r = fr_auxfile_next_create(a, head, len);

	if (r == 0)
		r = name_next(a, a->fd);
	if (r == 0)
		auxfile_switch_to_next(a);
	else
		fr_auxfile_next_abandon(a);
	return r;
}

int fr_auxfile_fd(const struct fr_auxfile *a)
{
	return a->fd;
}

int fr_auxfile_truncate(struct fr_auxfile *a, uint64_t bytes)
{
	a->bytes = FR_MIN(a->bytes, bytes);
	return ftruncate(a->fd, (off_t)a->bytes) < 0 ? -errno : 0;
}

int fr_auxfile_append(struct fr_auxfile *a, const void *data, size_t len)
{
	int r = fr_pwrite_all(a->fd, data, len, (off_t)a->bytes);

	if (r < 0) {
		/* Remove the part that was written. If ftruncate() fails, too, the next append overwrites
		   this part. */
		(void)!ftruncate(a->fd, (off_t)a->bytes);
		return r;
	}
	a->bytes += len;
	if (a->next.follows && a->next.failed == 0)
		a->next.failed = fr_auxfile_next_append(a, data, len);
	return 0;
}

uint64_t fr_auxfile_bytes(const struct fr_auxfile *a)
{
	return a->bytes;
}

struct fr_auxfile *fr_auxfile_close(struct fr_auxfile *a)
{
	if (!a)
		return NULL;
	fr_auxfile_next_abandon(a);
	(void)fdatasync(a->fd);
	close(a->fd);
	free(a);
	return NULL;
}
