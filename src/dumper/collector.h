/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CacheObjects=: after a dump is there, a thread of low priority looks which object files its samples are in,
 * and keeps copies of them. No dump waits for it.
 */

#include "base/diag.h"
#include "objects/cache.h"

#include <sys/types.h>

/* The cache in the recorder's directory; what --buildid-dir of perf wants. */
#define FR_COLLECTOR_DIRECTORY "debug"

struct fr_collector;

/* 0 or a negative errno with D. */
int fr_collector_start(
	const struct fr_object_cache_config *config, struct fr_collector **ret, struct fr_diag *d);
/* Finishes what is queued, joins, frees. NULL-safe; returns NULL. */
struct fr_collector *fr_collector_stop(struct fr_collector *c);

pid_t fr_collector_tid(const struct fr_collector *c);
/* NAME is a dump in the directory. Where many wait already it is dropped, as their processes may be gone
   before its turn comes. NULL-safe; any thread. */
void fr_collector_submit(struct fr_collector *c, const char *name);

struct fr_collector_stats {
	struct fr_object_cache_stats cache;
	uint64_t missed;  /* objects that were hit and could not be kept */
	uint64_t dropped; /* dumps that were not looked at */
	int last_errno;	  /* of writing; 0: none */
};
void fr_collector_stats(struct fr_collector *c, struct fr_collector_stats *ret);
