// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/server_private.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

int fr_peer_read(int fd, struct fr_peer *ret)
{
	struct fr_peer peer = {0};
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	peer.pid = cred.pid;
	peer.uid = cred.uid;
	peer.gid = cred.gid;
	*ret = peer;
	return 0;
}

void fr_peer_read_comm(struct fr_peer *peer)
{
	char path[64];

	/* The name may be gone, or be of who took the pid since: it is for logs only. */
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)peer->pid);
	if (peer->pid <= 0 || fr_read_line(path, peer->comm, sizeof(peer->comm)) < 0)
		peer->comm[0] = '\0';
}

/* The supplementary groups as the kernel noted them at connect(): no name service, which could block the
   loop, and no /proc, where the pid could be another's by now. */
static bool in_supplementary(int fd, gid_t group)
{
	_cleanup_free_ gid_t *groups = NULL;
	socklen_t len = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 || errno != ERANGE)
		return false;
	groups = malloc(len);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(gid_t); i++)
		if (groups[i] == group)
			return true;
	return false;
}

enum fr_access fr_peer_access(int fd, const struct fr_peer *peer, gid_t group)
{
	if (peer->uid == 0 || peer->uid == geteuid())
		return FR_ACCESS_ROOT;
	if (group != (gid_t)-1 && (peer->gid == group || in_supplementary(fd, group)))
		return FR_ACCESS_GROUP;
	return FR_ACCESS_ANYONE;
}
