/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Returns whether only root can have chosen the content of the file FD, which was opened by way of the
   process PID (0: this one): the file is of uid 0, neither a group nor others may write it, and no other
   user has brought in its file system. Can wait for the file system. */
bool fr_is_trusted_file(pid_t pid, int fd);
