/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A unix socket with a name in the file system that others connect or send to. Any thread. */

#include "base/diag.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct fr_socket_file_config {
	const char *path;
	int type;  /* SOCK_STREAM: listens; SOCK_DGRAM: each datagram tells its sender (SO_PASSCRED) */
	gid_t gid; /* mode 0660 for it; (gid_t)-1: 0600 */
	const char *what, *key; /* for errors: "control socket", "ControlSocket=" */
};

struct fr_socket_file {
	int fd;
	char *path;	/* owned; NULL: there is no file that is ours to remove */
	struct stat st; /* of the file that we made */
	bool alone;	/* we may not give it to the group: it is our user's alone */
};

/* Make it, over a stale one. The directory is made where only it is missing. -EADDRINUSE with D: somebody has
   it; -EEXIST: what is there is no socket; other negative errnos. Nothing is left on failure. */
int fr_socket_file_open(
	const struct fr_socket_file_config *config, struct fr_socket_file *ret, struct fr_diag *d);
/* Removes the file, if it is still ours. Closes fd where it is ≥ 0. */
void fr_socket_file_close(struct fr_socket_file *s);
