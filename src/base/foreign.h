/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Opens files that another process chose. The root of that process may be that of a container, and the path
 * may be a link, a FIFO or a device. These functions open only regular files, and links cannot leave that
 * root.
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
   system, because that may hang. Returns 0; -EAGAIN if the kernel has not cached the data; -EINVAL for a PID
   before Linux 5.12; or another negative errno. */
int fr_foreign_stat_cached(pid_t pid, const char *path, struct stat *ret);

/* Opens the file that PID has mapped from START to END, also if it was renamed or removed. Returns -EPERM if
   this process may not look. */
int fr_foreign_open_map(pid_t pid, uint64_t start, uint64_t end, struct stat *ret_stat);
