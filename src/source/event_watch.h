/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

/*
 * A watch: one perf event for Event=, opened on each CPU, or for each thread of a process. The event either
 * counts, or writes samples into small kernel rings, one per CPU. Only the main thread uses watches.
 */

#include "capture/event.h"
#include "capture/ring.h"
#include "perfdata/record.h"

/* The data that read(2) returns for one descriptor of a watch. */
struct fr_event_count {
	uint64_t value, enabled_ns, running_ns;
	uint64_t lost; /* since Linux 6.0 */
};

struct fr_event_watch {
	int *fds;
	struct fr_event_count *counts; /* the data of each fd at the last fr_event_watch_count() */
	size_t n_fds;
	struct fr_ring *rings; /* one for each CPU; NULL if the event counts */
	size_t n_rings;
	bool tells_lost;	     /* the member fr_event_count.lost is valid */
	int epoll_fd;		     /* readable if a ring has a record; -1: the event counts */
	struct fr_counter_cell cell; /* samples and losses of all rings */
	uint8_t *bounce;
};

struct fr_event_watch_config {
	const struct fr_event *event;
	const char *filter; /* the complete filter of a tracepoint; NULL: none */
	pid_t pid;	    /* a process: its threads, and the threads that it will start; 0: all processes */
	const char *cgroup; /* a cgroup, with the cgroups below it; NULL: all cgroups */
	bool count; /* true: count; false: record samples, with the period or the frequency of the event */
};

/* Opens and enables the event. Returns 0; or a negative errno, with a message in D, and W is then closed. */
int fr_event_watch_open(
	struct fr_event_watch *w, const struct fr_event_watch_config *config, struct fr_diag *d);
void fr_event_watch_close(struct fr_event_watch *w);

/* Returns the number of occurrences since the last call, on all CPUs. If the PMU ran a counter only for a
   part of the time, its count is scaled up, as in perf stat. */
uint64_t fr_event_watch_count(struct fr_event_watch *w);

/* For an event that does not count: stops polling the descriptors of ended threads. Returns whether all
   threads have ended. */
bool fr_event_watch_poll(struct fr_event_watch *w);

/* fr_event_watch_drain() reads all samples from the rings, and passes each sample to FN without a change. */
struct fr_event_sample {
	struct fr_sample head;
	uint32_t cpu, reserved;
};
typedef void (*fr_event_sample_fn)(void *ctx, const struct fr_event_sample *sample);
void fr_event_watch_drain(struct fr_event_watch *w, fr_event_sample_fn fn, void *ctx);
/* Returns the number of records for which the rings had no room. Before Linux 6.0, the kernel reports
   lost records only with the next record of the same CPU. So the result may not yet include the newest
   lost records. */
uint64_t fr_event_watch_lost(const struct fr_event_watch *w);
