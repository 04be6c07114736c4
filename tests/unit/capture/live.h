/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions for captures on the running kernel, and loads of known behaviour. */

#include "../unit.h"
#include "capture/capture.h"

#include <stdbool.h>

#include <sys/types.h>

/* The time limit of a load. After this time, the test fails. */
#define LIVE_LIMIT_NS (60 * FR_NSEC_PER_SEC)

/* Skip the test if tracefs cannot be mounted in a new mount namespace, or the number of getppid() is not
 * known. */
void live_need_tracepoints(void);

/* Open the events SPEC with FILTER, which may be NULL. The events are disabled. Returns the result of
   fr_capture_open(). */
int live_try_open(const char *spec, const char *filter, struct fr_capture_config *config,
	struct fr_capture **ret, struct fr_diag *d);
/* Does the same, but skips the test if the kernel does not permit the events, and fails the test on other
   errors. */
struct fr_capture *live_open(const char *spec, const char *filter, struct fr_capture_config *config);
void live_enable(struct fr_capture *c);
/* Open and enable an event that makes a sample for each getppid(). It samples only the current CPU, and this
   thread is pinned to this CPU. TERMS are the terms of the event: "" or "/…/". */
struct fr_capture *live_open_getppid(const char *terms, struct fr_capture_config *config);

/* Counts of the records that fr_capture_drain() has returned. */
struct live_seen {
	uint64_t samples, sideband;
	uint32_t tid;		   /* the counts below are only of this thread */
	uint64_t of_tid, backward; /* its samples, and its samples that are older than the previous one */
	uint64_t last_time;
	uint64_t mmap2, build_ids, comms, forks, exits;
};
void live_drain(struct fr_capture *c, struct live_seen *seen);
void live_drain_overwrite(struct fr_capture *c, struct live_seen *seen);

/* Returns the sums of the counters over all CPUs. */
struct fr_counter live_counter(const struct fr_capture *c, size_t event);

void live_getppid(uint64_t times);
/* Pin this thread to the CPU on which it runs (others may be forbidden). Returns the CPU. */
int live_pin(void);
void live_spin_ms(unsigned ms);

/* Start a process that waits for live_let_go(*RET_GO), runs FN, and exits. */
pid_t live_fork(void (*fn)(void), int *ret_go);
void live_let_go(int go);
