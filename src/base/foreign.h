/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Files that a process of somebody else chose: in its own root, which may be a container's, and with whatever
 * links, FIFOs and devices it has put there. Only regular files are ever opened.
 */

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Open PATH read-only as PID sees it (0: as we do). Links on the way stay within that root; one at the end is
   not followed. RET_STAT (may be NULL) tells of the open file. A descriptor, or a negative errno: -ENOEXEC
   for what is no regular file. */
int fr_foreign_open(pid_t pid, const char *path, struct stat *ret_stat);

/* The same below the directory ROOT, which stands for the root. */
int fr_foreign_open_below(int root, const char *path, struct stat *ret_stat);

/* The same for a path that a person wrote: a link at the end is followed too, and stays within that root. */
int fr_foreign_open_linked(pid_t pid, const char *path, struct stat *ret_stat);

/* Which file PATH is as PID sees it, links followed, without a wait for anybody: what a container has mounted
   there may be a file system that does not answer. RET: device, inode, size and time of the last change, as
   they are known. 0; -EAGAIN: to know it one would have to ask the file system; or a negative errno. Where
   the kernel cannot promise that (before 5.12), -EINVAL for a PID. */
int fr_foreign_stat_cached(pid_t pid, const char *path, struct stat *ret);

/* The file that PID has mapped at START … END, whatever its name has become. Same returns; -EPERM without the
   right to look. */
int fr_foreign_open_map(pid_t pid, uint64_t start, uint64_t end, struct stat *ret_stat);
