/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CacheObjects=: after a dump is written, a thread of low priority finds out which object files the samples
 * hit, and copies these files. No dump waits for the thread.
 */

#include "base/diag.h"
#include "objects/cache.h"

#include <sys/types.h>

/* The name of the cache in the recorder's directory. `perf --buildid-dir` reads the cache. */
#define FR_COLLECTOR_DIRECTORY "debug"

struct fr_collector;

/* Start the thread. Returns 0 or a negative errno with D. */
int fr_collector_start(
	const struct fr_object_cache_config *config, struct fr_collector **ret, struct fr_diag *d);
/* Collect the objects of the queued dumps, but for at most about 10 s; then end the thread and free C.
   NULL-safe; returns NULL. */
struct fr_collector *fr_collector_stop(struct fr_collector *c);

pid_t fr_collector_tid(const struct fr_collector *c);
/* Collect the objects of the dump NAME. If the queue is full, this counts the dump as dropped. NULL-safe; any
   thread. */
void fr_collector_submit(struct fr_collector *c, const char *name);

struct fr_collector_stats {
	struct fr_object_cache_stats cache;
	uint64_t missed;  /* number of objects that samples hit and that could not be copied */
	uint64_t dropped; /* number of dumps that found the queue full */
	int last_errno;	  /* positive errno of the last failed copy; 0: none failed */
};
void fr_collector_stats(struct fr_collector *c, struct fr_collector_stats *ret);
