// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/server_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>

static gid_t find_group(const struct fr_server_config *config, struct fr_listener *l)
{
	const struct group *g;

	if (!config->group || !*config->group) /* nobody else was asked for */
		return (gid_t)-1;
	g = getgrnam(config->group);
	if (g)
		return g->gr_gid;
	snprintf(l->notice, sizeof(l->notice),
		"there is no group '%s' on this system: the control socket is for root alone", config->group);
	return (gid_t)-1;
}

int fr_listener_open(const struct fr_server_config *config, struct fr_listener *ret, struct fr_diag *d)
{
	struct fr_listener l = {.file.fd = -1};
	struct fr_socket_file_config file = {
		.path = config->path,
		.type = SOCK_STREAM,
		.what = "control socket",
		.key = "ControlSocket= (--socket)",
	};
	int r;

	l.group = file.gid = find_group(config, &l);
	if (config->fd > 0) {
		l.file.fd = config->fd;
		*ret = l;
		return 0;
	}
	r = fr_socket_file_open(&file, &l.file, d);
	if (r < 0)
		return r;
	if (l.file.alone)
		snprintf(l.notice, sizeof(l.notice),
			"not permitted to give the control socket to its group: it is for this user alone");
	*ret = l;
	return 0;
}

void fr_listener_close(struct fr_listener *l)
{
	fr_socket_file_close(&l->file);
}
