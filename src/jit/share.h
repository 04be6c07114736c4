/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the code of processes may cost one dump, and each user of it. A user who is not root gets a quarter of
 * what is left when the first of their processes is seen: however many users there are, and whatever their
 * files hold, something is left for the next.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct jit_cost {
	uint64_t ns;	  /* of looking at files, and of finding what a map covers */
	uint64_t bytes;	  /* read, written and kept in memory */
	uint64_t records; /* bytes of map records in the dump */
};

struct jit_user;

struct jit_shares {
	struct jit_cost left; /* of the dump */
	struct jit_user *users;
};

void jit_shares_init(struct jit_shares *s);
void jit_shares_deinit(struct jit_shares *s);

/* The user's share, made when they are first asked for. NULL: no memory, or too many users. */
struct jit_user *jit_share_of(struct jit_shares *s, uid_t uid);
/* What is left of it. */
void jit_share_left(const struct jit_shares *s, const struct jit_user *u, struct jit_cost *ret);
bool jit_share_is_used_up(const struct jit_shares *s, const struct jit_user *u);
void jit_share_charge(struct jit_shares *s, struct jit_user *u, const struct jit_cost *cost);
