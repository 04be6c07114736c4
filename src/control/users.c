// SPDX-License-Identifier: GPL-2.0-or-later
/* What one user may take of the server: connections, and messages a second over all of them. */
#include "control/server_private.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>

static void refill(struct fr_user *u)
{
	const uint64_t now_ns = fr_monotonic_ns();

	u->tokens += (double)(now_ns - u->tokens_at_ns) * FR_SERVER_RATE / FR_NSEC_PER_SEC;
	u->tokens = FR_MIN(u->tokens, (double)FR_SERVER_RATE);
	u->tokens_at_ns = now_ns;
}

static void drop(struct fr_server *s, struct fr_user *u)
{
	LIST_REMOVE(u, link);
	s->n_users--;
	free(u);
}

/* The entry of UID, or NULL. Those that tell nothing any more are dropped on the way. */
static struct fr_user *find(struct fr_server *s, uid_t uid)
{
	struct fr_user *found = NULL;

	for (struct fr_user *u = LIST_FIRST(&s->users), *next; u; u = next) {
		next = LIST_NEXT(u, link);
		refill(u);
		if (u->uid == uid)
			found = u;
		else if (u->n_connections == 0 && u->tokens >= FR_SERVER_RATE)
			drop(s, u);
	}
	return found;
}

static struct fr_user *add(struct fr_server *s, uid_t uid)
{
	struct fr_user *u = s->n_users < FR_SERVER_MAX_USERS ? calloc(1, sizeof(*u)) : NULL;

	if (!u)
		return NULL;
	*u = (struct fr_user){.uid = uid, .tokens = FR_SERVER_RATE, .tokens_at_ns = fr_monotonic_ns()};
	LIST_INSERT_HEAD(&s->users, u, link);
	s->n_users++;
	return u;
}

int fr_user_take(struct fr_server *s, const struct fr_peer *peer, struct fr_user **ret)
{
	const size_t kept = peer->uid == 0 ? 0 : FR_SERVER_KEPT_FOR_ROOT;
	struct fr_user *u = find(s, peer->uid);

	if (s->n_connections >= FR_SERVER_MAX_CONNECTIONS - kept)
		return -EDQUOT;
	if (u && peer->uid != 0 && u->n_connections >= FR_SERVER_MAX_PER_USER)
		return -EDQUOT;
	if (!u)
		u = add(s, peer->uid);
	if (!u)
		return -ENOMEM;
	u->n_connections++;
	*ret = u;
	return 0;
}

void fr_user_put(struct fr_server *s, struct fr_user *u)
{
	u->n_connections--; /* find() drops it, once its bucket is full */
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
		drop(s, LIST_FIRST(&s->users));
}
