/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The owner of published files. Stock perf opens a file only if the file belongs to root or to the user who
 * runs perf. The service runs as a user of its own. So the service uses CAP_CHOWN to give its files to root.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Returns whether this process is not root, but has CAP_CHOWN to give its files to root. After this call,
   CAP_CHOWN is permitted, but is effective only while a thread changes an owner. Programs that this process
   executes do not get CAP_CHOWN. Call this function before any other thread starts. */
bool fr_owner_init(void);

/* FD has a file of this user open. If fr_owner_init() has returned true, gives the file to root. Unless GID
   is (gid_t)-1, also gives the file to the group GID. Open descriptors can still write to the file. Returns 0
   or a negative errno. */
int fr_owner_give(int fd, gid_t gid);

/* Opens NAME in DIRFD for reading and writing, even if this service has given it to root. Does not follow a
   link. Returns a descriptor or a negative errno. */
int fr_owner_open(int dirfd, const char *name);
