/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A unix socket with a path, for clients that connect or send to it. Any thread may call these functions. */

#include "base/diag.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct fr_socket_file_config {
	const char *path;
	int type;  /* SOCK_STREAM: listens; SOCK_DGRAM: the kernel adds the sender to each datagram */
	gid_t gid; /* the group of the socket, with mode 0660; (gid_t)-1: mode 0600 */
	const char *what, *key; /* for messages: "control socket", "ControlSocket=" */
};

struct fr_socket_file {
	int fd;
	char *path;	 /* owned; NULL: there is no file to remove */
	struct stat st;	 /* of the file: fr_socket_file_close() removes no other file */
	bool is_private; /* the group could not be set: only root and the user of this process can connect */
};

/* Creates the socket. If its directory is missing, creates that, too, but not the directories above it.
   Replaces an older socket that nobody listens on. Returns 0; or, with a message in D: -EADDRINUSE if another
   program listens on the path; -EEXIST if there is a file at the path that is not a socket; or another
   negative errno. After an error, there is no new socket file. */
int fr_socket_file_open(
	const struct fr_socket_file_config *config, struct fr_socket_file *ret, struct fr_diag *d);
/* Closes the socket, and removes its file. If there is now another file at the path, that file stays. */
void fr_socket_file_close(struct fr_socket_file *s);
