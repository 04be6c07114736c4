/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The kernel's side of Event=: one perf event, opened on every CPU (or for every thread), which either counts
 * or writes each occurrence into a small ring of its CPU. Main thread.
 */

#include "capture/event.h"
#include "capture/ring.h"
#include "perfdata/record.h"

/* Of one descriptor: what read(2) gives. */
struct fr_event_count {
	uint64_t value, enabled_ns, running_ns;
	uint64_t lost; /* not before Linux 6.0 */
};

struct fr_event_watch {
	int *fds;
	struct fr_event_count *counts; /* at the last fr_event_watch_count(), for each of FDS */
	size_t n_fds;
	struct fr_ring *rings; /* one a CPU; NULL: it counts */
	size_t n_rings;
	bool tells_lost; /* fr_event_count.lost is there */
	int epoll_fd;	 /* of all rings: readable when something occurred; -1: it counts */
	struct fr_id_table no_ids;
	struct fr_counter_cell cell; /* samples and losses of all rings */
	uint8_t *bounce;
};

struct fr_event_watch_config {
	const struct fr_event *event;
	const char *filter; /* of a tracepoint, all of it; NULL: none */
	pid_t pid;	    /* with all its threads, and those that it starts; 0: all */
	const char *cgroup; /* and those below it; NULL: all */
	bool count;	    /* else each occurrence, every sample_period of the event's attr */
};

/* Opened, with its filter, and enabled. On failure nothing is left, and D says why (as fr_capture_open()). */
int fr_event_watch_open(
	struct fr_event_watch *w, const struct fr_event_watch_config *config, struct fr_diag *d);
void fr_event_watch_close(struct fr_event_watch *w);

/* How often it occurred since the last call, over all CPUs. Where the PMU had the counter for a part of the
   time only, that is reckoned up, as perf stat does. */
uint64_t fr_event_watch_count(struct fr_event_watch *w);

/* What has ended is polled no more. True: everything has, as the process is gone. */
bool fr_event_watch_poll(struct fr_event_watch *w);

/* Hand out what the rings hold. CPU and everything else is as the kernel wrote it. */
struct fr_event_sample {
	struct fr_sample head;
	uint32_t cpu, reserved;
};
typedef void (*fr_event_sample_fn)(void *ctx, const struct fr_event_sample *sample);
void fr_event_watch_drain(struct fr_event_watch *w, fr_event_sample_fn fn, void *ctx);
/* What the rings had no room for. Before Linux 6.0 the kernel says it of a CPU with the next one there that
   has room. */
uint64_t fr_event_watch_lost(const struct fr_event_watch *w);
