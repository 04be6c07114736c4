/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parameters of a capture: events, CPUs, processes, sizes of rings. */

#include "capture/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct fr_capture;
struct fr_switches;
struct fr_unwinder;

struct fr_capture_config {
	const struct fr_event_list *events;
	const char *cpus;    /* a CPU list; NULL: all CPUs that are online */
	const pid_t *pids;   /* processes with all their threads. Their children inherit the events */
	size_t n_pids;	     /* 0: system-wide */
	bool enable_on_exec; /* `pids` is one process, a child of this process; its exec
				enables the samples */
	const char *cgroup;  /* path of a cgroup directory, or path below the cgroup mount; NULL: none */
	bool build_ids;	     /* build-ids in map records (KernelBuildIDs= in flightrecd.conf(5)) */
	size_t ring_bytes;   /* per CPU; a power of two, at least a page. 0: the default */
	size_t sideband_ring_bytes;
	size_t aux_bytes; /* of each AUX area; a power of two, at least a page. 0: the default */
	/* The unwinder of events with call-graph=unwind, borrowed until fr_capture_free(). NULL: there is
	   none here, and these events get the call graph fp. */
	const struct fr_unwinder *unwinder;
	/* Which events are switched off, borrowed until fr_capture_free(). NULL: the events have no
	   switches. */
	struct fr_switches *switches;
	/* The capture that the new one replaces, or NULL. If an AUX event stays the same, the new capture
	   shares its areas. */
	const struct fr_capture *previous;
	/* FR_BPF_FD_SLEEPS of the previous instance, so that the event offcpu also gets the sleeps that have
	   begun before the start; -1: there is none. */
	int sleeps_fd;
};
