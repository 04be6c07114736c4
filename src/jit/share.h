/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Bounds the cost of run-time code in one dump, in all and for each user. When the dump reaches the first
 * process of a user, this user gets a share: a quarter of what is left for the whole dump (root: all that is
 * left). So each user except root leaves a part for the next user.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct jit_cost {
	uint64_t ns;	  /* time to read files, and to find the functions in a map */
	uint64_t bytes;	  /* bytes read, written and kept in memory */
	uint64_t records; /* bytes of map records in the dump */
};

struct jit_user;

struct jit_shares {
	struct jit_cost left; /* for the whole dump */
	struct jit_user *users;
};

void jit_shares_init(struct jit_shares *s);
void jit_shares_deinit(struct jit_shares *s);

/* Finds the share of user UID. The first call for a user makes the share. Returns NULL if there is no memory,
   or there are too many users. */
struct jit_user *jit_share_find(struct jit_shares *s, uid_t uid);
/* Returns what is left of the share of U, but not more than what is left for the whole dump. */
struct jit_cost jit_share_left(const struct jit_shares *s, const struct jit_user *u);
/* Returns true if nothing is left of at least one of the three costs. */
bool jit_share_is_used_up(const struct jit_shares *s, const struct jit_user *u);
/* Subtracts COST from the share of U and from what is left for the whole dump. A part of COST that exceeds
   the share is subtracted from neither. Neither becomes less than 0. */
void jit_share_charge(struct jit_shares *s, struct jit_user *u, const struct jit_cost *cost);
