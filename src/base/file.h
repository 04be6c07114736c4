/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads and writes whole files, and makes files that appear as a whole or not at all. All functions except
   fr_stat_cached() can wait for the file system. */

#include "base/buf.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Both functions write all of DATA. fr_pwrite_all() writes at the offset AT. They return 0 or a negative
   errno. */
int fr_write_all(int fd, const void *data, size_t len);
int fr_pwrite_all(int fd, const void *data, size_t len, off_t at);

/* Reads LEN bytes at AT, or fewer at the end of the file. Returns the number of bytes or a negative errno. */
ssize_t fr_pread_all(int fd, void *data, size_t len, off_t at);

/* Appends what a read of FD to the end returns to RET, and a NUL that RET->len does not count. Returns 0,
   -EFBIG if there are more than MAX bytes, or another negative errno. */
int fr_read_fd(int fd, size_t max, struct fr_buf *ret);
/* The same for the file DIRFD/PATH. DIRFD may be AT_FDCWD. */
int fr_read_file(int dirfd, const char *path, size_t max, struct fr_buf *ret);

/* Reads the first line of a file, without its newline. RET gets at most SIZE bytes, with the NUL. Returns 0
   or a negative errno. */
int fr_read_line(const char *path, char *ret, size_t size);

/* Opens the directory NAME in DIRFD. If NAME is ".", opens DIRFD itself. Fails if NAME is a symbolic link. On
   failure, returns NULL and sets errno. */
DIR *fr_opendir_at(int dirfd, const char *name);

/* Opens the directory NAME in DIRFD. If NAME does not exist, creates it with mode 0750. Fails if NAME is a
   symbolic link. Gives the directory to the group GID unless GID is (gid_t)-1. Returns a descriptor or a
   negative errno. */
int fr_directory_make(int dirfd, const char *name, gid_t gid);

/* Removes the files of DIRFD whose names begin with PREFIX. */
void fr_remove_prefixed(int dirfd, const char *prefix);

/* Creates a file DIRFD/".NAME.XXXXXXXX" for reading and writing. Writes the name of this file to RET_TMP,
   which has TMP_SIZE bytes (NAME_MAX + 1 are enough). Returns a descriptor or a negative errno. */
int fr_tmp_create(int dirfd, const char *name, mode_t mode, char *ret_tmp, size_t tmp_size);

/* Renames the file FROM to TO. Returns 0; -EEXIST if there is already a file TO; or another negative
   errno. */
int fr_rename_to_new(int dirfd, const char *from, const char *to);

/* Renames TMP, which the caller has synced, to NAME, and syncs the directory. Waits for the disk. Returns 0;
   a negative errno if the file keeps the name TMP (-EEXIST if there is already a file NAME); or a positive
   errno if only the sync failed. With a positive errno, the file has the name NAME, but a power failure can
   undo the renaming. */
int fr_tmp_publish(int dirfd, const char *tmp, const char *name);

/* Creates or replaces the file NAME, with the content DATA, and syncs it. Gives the file to the group GID and
   to root, if possible: see fr_owner_give(). Waits for the disk. Returns 0; a negative errno if there is no
   new file; or a positive errno if only the sync of the directory failed. */
int fr_file_replace(int dirfd, const char *name, mode_t mode, gid_t gid, const void *data, size_t len);

/* Returns whether NAME in DIRFD is the file that FD has open. A symbolic link to that file does not count. */
bool fr_file_is_at(int fd, int dirfd, const char *name);

/* Returns whether PATH is the directory that DIRFD has open. */
bool fr_directory_is_at(int dirfd, const char *path);

/* Makes DIRFD a descriptor of the directory PATH, if DIRFD has another directory open. For example, somebody
   can have renamed the old directory and created a new directory. Returns 0 if DIRFD already has the
   directory PATH open; 1 if DIRFD has changed; or a negative errno, without a change of DIRFD, if PATH cannot
   be opened or is not writable. */
int fr_directory_follow(int dirfd, const char *path);

/* Writes the path of an open directory, for messages; if the path cannot be found, writes "the directory". */
void fr_directory_name(int dirfd, char *ret, size_t size);

/* Reads device, inode, size and mtime of an open file from the kernel's cache. Does not ask the file system,
   because a file system can hang. Returns 0 or a negative errno. */
int fr_stat_cached(int fd, struct stat *ret);

/* Raises the limit of open files of this process as far as it is allowed to. */
void fr_file_limit_raise(void);
