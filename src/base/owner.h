/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The owner of published files. Stock perf opens a file only if it belongs to root or to the caller. The
 * service runs as a user of its own with CAP_CHOWN, so it gives its files to root.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Returns whether this process is such a service: it is not root, but has CAP_CHOWN. From then on, the
   capability is permitted, but effective only while a thread changes an owner. Executed programs do not get
   it. Call this function before any thread starts. */
bool fr_owner_init(void);

/* Gives FD, a file of this user, to root if this process is such a service, and to the group GID unless that
   is (gid_t)-1. Open descriptors can still write. Returns 0 or a negative errno. */
int fr_owner_give(int fd, gid_t gid);

/* Opens NAME in DIRFD for reading and writing, also if this service gave it to root. Does not follow a link.
   Returns a descriptor or a negative errno. */
int fr_owner_open(int dirfd, const char *name);
