/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The collector (CacheObjects= in flightrecd.conf(5)) is a thread of low priority. After a dump has been
 * written, it finds the object files (ELF files) that contain the addresses of the samples, and copies these
 * files to a cache. No dump waits for this thread.
 */

#include "base/diag.h"
#include "objects/cache.h"

#include <sys/types.h>

/* The name of the cache in the recorder's directory. `perf --buildid-dir` reads the cache. */
#define FR_COLLECTOR_DIRECTORY "debug"

struct fr_collector;

/* Starts the thread. Returns 0; or a negative errno, with a message in D. */
int fr_collector_start(
	const struct fr_object_cache_config *config, struct fr_collector **ret, struct fr_diag *d);
/* Collects the object files of the queued dumps, but for at most about 10 s. Then ends the thread and frees
   C. C may be NULL. Returns NULL. */
struct fr_collector *fr_collector_stop(struct fr_collector *c);

pid_t fr_collector_tid(const struct fr_collector *c);
/* Puts the dump NAME into the queue, so that the thread collects its object files. If the queue is full,
   counts the dump as dropped. C may be NULL. Any thread may call the function. */
void fr_collector_submit(struct fr_collector *c, const char *name);

struct fr_collector_stats {
	struct fr_object_cache_stats cache;
	uint64_t missed;  /* number of object files of samples that could not be copied */
	uint64_t dropped; /* number of dumps that were left out, because the queue was full */
	int last_errno;	  /* positive errno of the last failed copy; 0: no copy failed */
};
void fr_collector_stats(struct fr_collector *c, struct fr_collector_stats *ret);
