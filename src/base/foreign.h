/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Opens files that another process chose. Its root may be that of a container, and the path may be a link, a
 * FIFO or a device. Only regular files are opened, and links cannot leave that root.
 *
 * All but fr_foreign_stat_cached() can wait for the file system. They return a descriptor for reading,
 * -ENOEXEC for a file that is not regular, or another negative errno. RET_STAT (may be NULL) describes the
 * open file.
 */

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens PATH as PID sees it (0: as this process does). A link at the end is not followed. */
int fr_foreign_open(pid_t pid, const char *path, struct stat *ret_stat);

/* The same, with the directory ROOT as the root. */
int fr_foreign_open_below(int root, const char *path, struct stat *ret_stat);

/* The same for a path that a person configured: a link at the end is followed. */
int fr_foreign_open_linked(pid_t pid, const char *path, struct stat *ret_stat);

/* Reads device, inode, size and mtime of PATH as PID sees it, with links followed, without asking a file
   system, which may hang. Returns 0; -EAGAIN if the kernel does not have them cached; -EINVAL for a PID
   before Linux 5.12; or another negative errno. */
int fr_foreign_stat_cached(pid_t pid, const char *path, struct stat *ret);

/* Opens the file that PID has mapped at START … END, also if it was renamed or removed. -EPERM without
   permission to look. */
int fr_foreign_open_map(pid_t pid, uint64_t start, uint64_t end, struct stat *ret_stat);
