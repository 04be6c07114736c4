// SPDX-License-Identifier: GPL-2.0-or-later

/* The access of a client, and the limits of its user: connections, and messages in a second. */

#include "control/server_private.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <sys/socket.h>

int fr_peer_read(int fd, struct fr_peer *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	*ret = (struct fr_peer){.pid = cred.pid, .uid = cred.uid, .gid = cred.gid};
	return 0;
}

void fr_peer_read_comm(struct fr_peer *peer)
{
	char path[64];

	/* If the client has exited, its pid can belong to another process now. A wrong name does no harm,
	   because the name is only shown. */
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)peer->pid);
	if (peer->pid <= 0 || fr_read_line(path, peer->comm, sizeof(peer->comm)) < 0)
		peer->comm[0] = '\0';
}

/* Checks the supplementary groups that the client had at its connect(): the kernel has stored them. The
   groups are not looked up by the user's name, because a name service could block the loop. They are not read
   from /proc, because the pid could belong to another process now. */
static bool is_in_supplementary_group(int fd, gid_t group)
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
	if (group != (gid_t)-1 && (peer->gid == group || is_in_supplementary_group(fd, group)))
		return FR_ACCESS_GROUP;
	return FR_ACCESS_ANYONE;
}

static void refill(struct fr_user *u)
{
	const uint64_t now_ns = fr_monotonic_ns();

	u->tokens += (double)(now_ns - u->tokens_at_ns) * FR_SERVER_RATE / FR_NSEC_PER_SEC;
	u->tokens = FR_MIN(u->tokens, (double)FR_SERVER_RATE);
	u->tokens_at_ns = now_ns;
}

static void remove_user(struct fr_server *s, struct fr_user *u)
{
	LIST_REMOVE(u, link);
	s->n_users--;
	free(u);
}

/* Returns the entry of UID, or NULL. Also gives all users their new tokens, and removes each other user who
   has all FR_SERVER_RATE tokens and no connection. */
static struct fr_user *find_user(struct fr_server *s, uid_t uid)
{
	struct fr_user *found = NULL;

	for (struct fr_user *u = LIST_FIRST(&s->users), *next; u; u = next) {
		next = LIST_NEXT(u, link);
		refill(u);
		if (u->uid == uid)
			found = u;
		else if (u->n_connections == 0 && u->tokens >= FR_SERVER_RATE)
			remove_user(s, u);
	}
	return found;
}

static struct fr_user *add_user(struct fr_server *s, uid_t uid)
{
	struct fr_user *u = s->n_users < FR_SERVER_MAX_USERS ? calloc(1, sizeof(*u)) : NULL;

	if (!u)
		return NULL;
	*u = (struct fr_user){.uid = uid, .tokens = FR_SERVER_RATE, .tokens_at_ns = fr_monotonic_ns()};
	LIST_INSERT_HEAD(&s->users, u, link);
	s->n_users++;
	return u;
}

int fr_user_add_connection(struct fr_server *s, const struct fr_peer *peer, struct fr_user **ret)
{
	const size_t kept = peer->uid == 0 ? 0 : FR_SERVER_RESERVED_FOR_ROOT;
	struct fr_user *u = find_user(s, peer->uid);

	if (s->n_connections >= FR_SERVER_MAX_CONNECTIONS - kept)
		return -EDQUOT;
	if (u && peer->uid != 0 && u->n_connections >= FR_SERVER_MAX_PER_USER)
		return -EDQUOT;
	if (!u)
		u = add_user(s, peer->uid);
	if (!u)
		return -ENOMEM;
	u->n_connections++;
	*ret = u;
	return 0;
}

void fr_user_remove_connection(struct fr_user *u)
{
	u->n_connections--;
}

bool fr_user_take_token(struct fr_user *u)
{
	refill(u);
	if (u->tokens < 1)
		return false;
	u->tokens -= 1;
	return true;
}

void fr_users_free(struct fr_server *s)
{
	while (!LIST_EMPTY(&s->users))
		remove_user(s, LIST_FIRST(&s->users));
}
