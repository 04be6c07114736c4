/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Declarations that the files for opening, filters and counters share. Private to this folder. */

#include "capture/bpf_adopted.h"
#include "capture/bpf_capture.h"
#include "capture/bpf_tracepoint.h"
#include "capture/capture.h"
#include "capture/perf_open.h"
#include "capture/ring.h"
#include "capture/target.h"

#include <sys/stat.h>

#define FR_DEFAULT_RING_BYTES (2u << 20)
#define FR_DEFAULT_SIDEBAND_RING_BYTES (512u << 10)
#define FR_DEFAULT_AUX_BYTES (4u << 20)
#define FR_CPUS_MAX 8192
/* The most bytes that a ring collects before it wakes the recorder. Records that are drained soon are still
   in the caches of the CPU. The rest of a large ring is filled only when the recorder gets no CPU for some
   time. */
#define FR_WAKEUP_MAX ((size_t)1 << 20)

enum fr_ring_kind {
	FR_RING_SIDEBAND, /* drained first */
	FR_RING_FORWARD,
	FR_RING_OVERWRITE,
	_FR_RING_MAX,
};

/* One open perf event. */
struct fr_open_event {
	int fd;
	uint32_t event, cpu_index;
	uint64_t id;
};

/* The ring of an AUX area (aux_area.h), as this capture drains it. The area owns the memory and the events.
 */
struct fr_aux_view {
	struct fr_aux_area *area; /* a reference */
	uint32_t event, cpu_index;
	struct fr_ring ring;
};

struct fr_capture {
	/* Copies of the events, with the attrs that the kernel accepted. The side-band event is the last. */
	struct fr_event *events;
	size_t n_events;
	int *cpus;
	size_t n_cpus;	  /* CPUs with side-band: all online CPUs, unless tasks are recorded */
	size_t n_sampled; /* the first n_sampled elements of `cpus` also have the other events */
	struct fr_open_event *open;
	size_t n_open;
	struct fr_ring *rings[_FR_RING_MAX]; /* n_cpus each */
	size_t ring_bytes[_FR_RING_MAX];
	struct fr_bpf_capture *bpf; /* makes the samples of events with `unwind`; NULL: there are none */
	struct fr_bpf_tracepoints
		*tracepoints;		/* makes the samples of events with `bpf`; NULL: there are none */
	struct fr_bpf_adopted *adopted; /* the rings of the previous instance; NULL: there are none */
	struct fr_aux_view *aux;	/* of all AUX events */
	size_t n_aux, aux_bytes;
	struct fr_switches *switches;	   /* borrowed; NULL: none */
	const struct fr_capture *previous; /* only during fr_capture_open() */
	struct fr_id_table ids;
	/* [event * n_cpus + cpu]; and one more, for events and CPUs that only the previous instance had. */
	struct fr_counter_cell *cells;
	struct fr_counter_cell unknown;
	struct fr_counter *inherited; /* counts of earlier captures, in the order of CELLS; NULL: none */
	int epoll_fd;
	uint8_t *bounce; /* a buffer of FR_RUN_MAX bytes for the recorder thread */
	struct fr_overwritable_room look;
	struct stat cgroup; /* the directory of the recorded cgroup: a new cgroup at the same path has another
			       inode; all 0: no cgroup is recorded */
	unsigned divisor;   /* the current frequencies are the configured frequencies divided
			       by this number */
	bool has_overwrite, system_wide, enable_on_exec, filters_set;
	bool lives_on; /* see fr_capture_set_lives_on() */
};

/* bpf_open.c: makes the BPF rings, and opens the tracepoints that BPF programs record, if there are such
   events. Sets `bpf` and `unwind` of the events. Returns 0; or a negative errno, with a message in D. */
int fr_bpf_open(struct fr_capture *c, const struct fr_capture_config *config, const struct fr_target *t,
	struct fr_diag *d);

/* switch.c: gives each event that can be switched its slot. Returns 0; or a negative errno, with a message in
   D: an event is off in its configuration, and nothing could switch it on. */
int fr_switch_assign_slots(struct fr_capture *c, struct fr_switches *switches, struct fr_diag *d);
bool fr_switch_is_off(const struct fr_capture *c, const struct fr_event *e);
/* Returns whether a program makes the samples of E. The program reads the switch itself. */
bool fr_switch_is_by_program(const struct fr_event *e);
/* Returns the frequency or the period of E, with its own rate and the divisor of C, as
   PERF_EVENT_IOC_PERIOD takes it. */
uint64_t fr_switch_rate_value(const struct fr_capture *c, const struct fr_event *e);

/* filter.c: checks the users' filters. For this, it sets each filter on an event that is opened only for the
   check. Returns 0; or a negative errno, with a message in D. */
int fr_filters_check(const struct fr_capture *c, struct fr_diag *d);
/* Sets filters that contain the users' filters and exclude the N threads TIDS (N may be 0). The kernel
   accepts only one filter for each event, so call this function once. Returns 0; or a negative errno, with a
   message in D. */
int fr_filters_set(struct fr_capture *c, const pid_t *tids, size_t n, struct fr_diag *d);
