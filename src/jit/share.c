// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/share.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "sideband/hash.h"

/* Bounds for one dump. */
#define NS_MAX (2 * FR_NSEC_PER_SEC)
#define BYTES_MAX (512ull << 20)
#define RECORD_BYTES_MAX (32u << 20)
#define USERS_MAX 4096u

struct jit_user {
	UT_hash_handle hh;
	uid_t uid;
	struct jit_cost left;
};

void jit_shares_init(struct jit_shares *s)
{
	*s = (struct jit_shares){.left = {NS_MAX, BYTES_MAX, RECORD_BYTES_MAX}};
}

void jit_shares_deinit(struct jit_shares *s)
{
	FR_HASH_CLEAR(s->users, free);
}

struct jit_user *jit_share_find(struct jit_shares *s, uid_t uid)
{
	const uint64_t part = uid == 0 ? 1 : 4;
	struct jit_user *u = FR_HASH_FIND(s->users, uid, uid);

	if (u || HASH_COUNT(s->users) >= USERS_MAX)
		return u;
	u = FR_HASH_NEW(s->users, uid, uid);
	if (u)
		u->left = (struct jit_cost){s->left.ns / part, s->left.bytes / part, s->left.records / part};
	return u;
}

static struct jit_cost minimum(const struct jit_cost *a, const struct jit_cost *b)
{
	return (struct jit_cost){
		FR_MIN(a->ns, b->ns), FR_MIN(a->bytes, b->bytes), FR_MIN(a->records, b->records)};
}

struct jit_cost jit_share_left(const struct jit_shares *s, const struct jit_user *u)
{
	return minimum(&s->left, &u->left);
}

bool jit_share_is_used_up(const struct jit_shares *s, const struct jit_user *u)
{
	const struct jit_cost left = jit_share_left(s, u);

	return left.ns == 0 || left.bytes == 0 || left.records == 0;
}

/* Subtracts COST from FROM. The caller ensures that no member of COST is larger than the same member of
   FROM. */
static void subtract(struct jit_cost *from, const struct jit_cost *cost)
{
	from->ns -= cost->ns;
	from->bytes -= cost->bytes;
	from->records -= cost->records;
}

void jit_share_charge(struct jit_shares *s, struct jit_user *u, const struct jit_cost *cost)
{
	/* The last file of a user can cost more than what is left of the share of this user. The excess is
	   not subtracted from what is left for the whole dump. */
	const struct jit_cost of_user = minimum(cost, &u->left), of_all = minimum(&of_user, &s->left);

	subtract(&s->left, &of_all);
	subtract(&u->left, &of_user);
}
