/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Opens files that another process chose. The other process can have another root directory (in a container),
 * and the path can be a link, a FIFO or a device. These functions open only regular files, and follow no link
 * out of the root directory of the other process.
 *
 * All functions except fr_foreign_stat_cached() can wait for the file system. The functions return a
 * descriptor for reading, -ENOEXEC for a file that is not regular, or another negative errno. They also write
 * a description of the open file to RET_STAT, which may be NULL.
 */

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens PATH in the root directory of the process PID (0: of this process). If the last part of PATH is a
   symbolic link, returns -ENOEXEC. */
int fr_foreign_open(pid_t pid, const char *path, struct stat *ret_stat);

/* Does the same as fr_foreign_open(), but PATH is in the root directory that the descriptor ROOT has open. */
int fr_foreign_open_below(int root, const char *path, struct stat *ret_stat);

/* Does the same as fr_foreign_open() for a path from the configuration. If the last part of PATH is a
   symbolic link, follows it. */
int fr_foreign_open_linked(pid_t pid, const char *path, struct stat *ret_stat);

/* Reads device, inode, size and mtime of PATH in the root directory of PID, and follows links. The function
   does not ask a file system, because a file system can hang. Returns 0; -EAGAIN if the kernel has not cached
   PATH; or another negative errno. Before Linux 5.12, the function returns -EINVAL if PID is not 0, and can
   wait for the file system if PID is 0. */
int fr_foreign_stat_cached(pid_t pid, const char *path, struct stat *ret);

/* Opens the file that PID has mapped from START to END, also if the file was renamed or removed. Returns
   -EPERM if this process is not allowed to follow the links in /proc/PID/map_files. */
int fr_foreign_open_map(pid_t pid, uint64_t start, uint64_t end, struct stat *ret_stat);
