/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The chain of wakers: a thread waited until another thread woke it. If that thread itself waited for most of
 * this time, the chain goes on with its waker. The last thread of the chain held up all the others.
 */

#include "report/facts.h"

#define FR_CHAIN_MAX 8

/* What a thread of the chain did while the thread before it waited. */
enum fr_link_doing {
	FR_LINK_UNKNOWN, /* the recording has nothing of it: a machine can hide it */
	FR_LINK_RAN,	 /* for a large part of the time */
	FR_LINK_QUEUED,	 /* waited for a CPU for a large part of the time */
	FR_LINK_WAITED,	 /* for most of the time: see `wait` */
};

struct fr_link {
	uint32_t pid, tid;
	enum fr_link_doing doing;
	const struct fr_wait_fact *wait; /* with FR_LINK_WAITED and FR_LINK_QUEUED: the longest one */
	uint32_t stack;			 /* with FR_LINK_RAN: of the last sample; otherwise FR_STACK_NONE */
};

struct fr_chain {
	struct fr_link
		links[FR_CHAIN_MAX]; /* the first one is the waker of the wait, and the last one the root */
	size_t n;		     /* 0: the waker is not known, or it was an interrupt */
};

struct fr_chains; /* an index of the waits */

/* F and P are borrowed. Returns 0 or -ENOMEM. */
int fr_chains_new(const struct fr_profile *p, const struct fr_facts *f, struct fr_chains **ret);
/* Accepts NULL; returns NULL. */
struct fr_chains *fr_chains_free(struct fr_chains *c);
/* Follows the chain of W. */
void fr_chains_follow(const struct fr_chains *c, const struct fr_wait_fact *w, struct fr_chain *ret);
