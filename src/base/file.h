/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Files: whole reads with a bound, whole writes, and files that appear whole or not at all. */

#include "base/buf.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* All of DATA, whatever write() returns. 0 or a negative errno. */
int fr_write_all(int fd, const void *data, size_t len);
int fr_pwrite_all(int fd, const void *data, size_t len, off_t at);

/* Up to LEN bytes at AT; short only at the end of the file. Returns the number read or a negative errno. */
ssize_t fr_pread_all(int fd, void *data, size_t len, off_t at);

/* Append the content of DIRFD/PATH (AT_FDCWD allowed) to RET, followed by a NUL that LEN does not count.
   -EFBIG past MAX bytes. 0 or a negative errno. */
int fr_read_file(int dirfd, const char *path, size_t max, struct fr_buf *ret);

/* The same for a line: without its newline, into RET of SIZE bytes, truncated to fit. */
int fr_read_line(const char *path, char *ret, size_t size);

/* The directory NAME in DIRFD, "." for itself, which is no link; or NULL with errno. To be closed. */
DIR *fr_opendir_at(int dirfd, const char *name);

/* Create DIRFD/".NAME.XXXXXX" O_RDWR|O_CLOEXEC with MODE. RET_TMP has room for NAME_MAX + 1. Returns the fd
 * or -errno. */
int fr_tmp_create(int dirfd, const char *name, mode_t mode, char *ret_tmp, size_t tmp_size);

/* Rename without clobber (-EEXIST) and sync the directory. The caller has fsync'ed the file. 0; a negative
   errno: TMP is where it was; or the positive errno of that sync: the file has NAME, and a power cut may take
   it away. */
int fr_tmp_publish(int dirfd, const char *tmp, const char *name);

/* A small file, whole: temporary name, write, fsync, given to GID as far as we may (base/owner.h), rename
   OVER an older one, directory fsync. Returns as fr_tmp_publish(). */
int fr_file_replace(int dirfd, const char *name, mode_t mode, gid_t gid, const void *data, size_t len);

/* Whether PATH is the directory that DIRFD is open on. */
bool fr_directory_is_at(int dirfd, const char *path);

/* Where PATH is another directory than DIRFD, as after a rename, DIRFD becomes open on that one, for all who
   use it. 0: it is the same; 1: it is followed; or a negative errno: PATH cannot be written to, and DIRFD
   stays. */
int fr_directory_follow(int dirfd, const char *path);

/* The path of a directory that is open, for messages; or "the directory". */
void fr_directory_name(int dirfd, char *ret, size_t size);

/* Looks at an open file without asking its file system, which may hang: device, inode, size and
 * mtime. */
int fr_stat_cached(int fd, struct stat *ret);
