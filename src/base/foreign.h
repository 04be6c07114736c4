/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Opens files that another process chose. That process may have another root directory (a container), and the
 * path may be a link, a FIFO or a device. These functions open only regular files, and follow no link out of
 * that root directory.
 *
 * All functions except fr_foreign_stat_cached() can wait for the file system. They return a descriptor for
 * reading, -ENOEXEC for a file that is not regular, or another negative errno. RET_STAT (may be NULL)
 * describes the open file.
 */

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens PATH as PID sees it (0: as this process does). A link at the end is not followed. */
int fr_foreign_open(pid_t pid, const char *path, struct stat *ret_stat);

/* Does the same with the directory ROOT as the root. */
int fr_foreign_open_below(int root, const char *path, struct stat *ret_stat);

/* Does the same for a path from the configuration, and follows a link at the end. */
int fr_foreign_open_linked(pid_t pid, const char *path, struct stat *ret_stat);

/* Reads device, inode, size and mtime of PATH as PID sees it, and follows links. It does not ask a file
   system, because a file system may hang. Returns 0; -EAGAIN if the kernel has not cached the data; or
   another negative errno. Before Linux 5.12, it returns -EINVAL for a PID other than 0, and may wait for the
   file system for PID 0. */
int fr_foreign_stat_cached(pid_t pid, const char *path, struct stat *ret);

/* Opens the file that PID has mapped from START to END, also if it was renamed or removed. Returns -EPERM if
   this process may not read the maps of PID. */
int fr_foreign_open_map(pid_t pid, uint64_t start, uint64_t end, struct stat *ret_stat);
