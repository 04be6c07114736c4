/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whom files belong to. Stock perf opens a file only where it is root's or its caller's own. A service runs
 * as a user of its own, so it gives what others read to root: a process that has CAP_CHOWN and is not root.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Before any thread. Whether this process is such a service. CAP_CHOWN stays permitted then, and is effective
   in a thread only while it gives a file; no program that is executed has it. */
bool fr_owner_init(void);

/* FD, which is ours, goes to root where this process is such a service, and to GID ((gid_t)-1: leave). What
   is open for writing stays so. 0 or a negative errno. */
int fr_owner_give(int fd, gid_t gid);

/* NAME in DIRFD for reading and writing, no link, also where it was given to root. The fd or a negative
 * errno.
 */
int fr_owner_open(int dirfd, const char *name);
