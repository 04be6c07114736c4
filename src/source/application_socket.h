/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What comes to the socket that applications send to: a datagram with who sent it. */

#include <stddef.h>
#include <sys/types.h>

/* One datagram of at most SIZE bytes, and the pid that the kernel says (0: of no process that we can see).
   Its length; -EMSGSIZE: it was longer; -EAGAIN: there is none; another negative errno. Descriptors that came
   with it are closed. */
ssize_t fr_application_socket_receive(int fd, void *data, size_t size, pid_t *ret_pid);
