/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CacheObjects=: after a dump is written, a thread of low priority finds out which object files its samples
 * hit, and copies them. No dump waits for it.
 */

#include "base/diag.h"
#include "objects/cache.h"

#include <sys/types.h>

/* The cache in the output directory, for --buildid-dir of perf. */
#define FR_COLLECTOR_DIRECTORY "debug"

struct fr_collector;

/* 0 or a negative errno with D. */
int fr_collector_start(
	const struct fr_object_cache_config *config, struct fr_collector **ret, struct fr_diag *d);
/* Finish the queued dumps, end the thread, free. NULL-safe; returns NULL. */
struct fr_collector *fr_collector_stop(struct fr_collector *c);

pid_t fr_collector_tid(const struct fr_collector *c);
/* Collect the objects of NAME, a dump in the directory. If many dumps wait, it is dropped: its processes may
   be gone before its turn. NULL-safe; any thread. */
void fr_collector_submit(struct fr_collector *c, const char *name);

struct fr_collector_stats {
	struct fr_object_cache_stats cache;
	uint64_t missed;  /* objects that were hit and could not be kept */
	uint64_t dropped; /* dumps that were not looked at */
	int last_errno;	  /* of writing; 0: none */
};
void fr_collector_stats(struct fr_collector *c, struct fr_collector_stats *ret);
