// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <systemd/sd-daemon.h>

static int prepare(int fd, struct fr_diag *d)
{
	int flags = fcntl(fd, F_GETFL);

	if (sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) <= 0)
		return fr_fail(d, -EINVAL, "set ListenStream=/run/flightrec/control in its .socket unit",
			"the descriptor \"control\" of the service manager is not a listening unix stream "
			"socket");
	/* If the unit does not set NonBlocking=, the descriptor is a blocking one. */
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot set up the socket of the service manager");
	return fd;
}

int fr_activated_control(struct fr_diag *d)
{
	char **names = NULL;
	/* The argument 0 keeps the environment variables, because they also name the descriptors of the
	   descriptor store. */
	int n = sd_listen_fds_with_names(0, &names), r = 0;

	for (int i = 0; i < n && r == 0; i++)
		if (strcmp(names[i], "control") == 0)
			r = prepare(SD_LISTEN_FDS_START + i, d);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r;
}
