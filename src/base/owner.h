/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The owner of published files. Stock perf opens a file only if the file belongs to root or to the user who
 * runs perf. The service runs as a user of its own, so it gives its files to root, with CAP_CHOWN.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Returns whether this process is such a service: it is not root, but has CAP_CHOWN. After this call, the
   capability is permitted, but effective only while a thread changes an owner, and executed programs do not
   get the capability. Call this function before any other thread starts. */
bool fr_owner_init(void);

/* Gives FD, a file of this user, to root if this process is such a service, and to the group GID unless that
   is (gid_t)-1. Open descriptors can still write. Returns 0 or a negative errno. */
int fr_owner_give(int fd, gid_t gid);

/* Opens NAME in DIRFD for reading and writing, even if this service has given it to root. Does not follow a
   link. Returns a descriptor or a negative errno. */
int fr_owner_open(int dirfd, const char *name);
