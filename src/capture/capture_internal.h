/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between the files that open, filter and explain; not for other folders. */

#include "capture/capture.h"
#include "capture/perf_open.h"
#include "capture/ring.h"
#include "capture/target.h"

#include <sys/types.h>

#define FR_DEFAULT_RING_BYTES (2u << 20)
#define FR_DEFAULT_SIDEBAND_RING_BYTES (512u << 10)

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

/* Which one has a path at a time: one that is made anew is another one. */
struct fr_cgroup_identity {
	dev_t dev;
	ino_t ino; /* 0: none */
};
/* target.c; of the directory FD, or -1. */
struct fr_cgroup_identity fr_cgroup_identify(int fd);

struct fr_capture {
	struct fr_event *events; /* copies, with the attrs that the kernel took; the side-band event last */
	size_t n_events;
	int *cpus;
	size_t n_cpus;	  /* those with side-band: of whole CPUs, all that are online */
	size_t n_sampled; /* the first of them: those that are asked for */
	struct fr_open_event *open;
	size_t n_open;
	struct fr_ring *rings[_FR_RING_MAX]; /* n_cpus each */
	size_t ring_bytes[_FR_RING_MAX];
	struct fr_id_table ids;
	struct fr_counter_cell *cells; /* [event * n_cpus + cpu] */
	struct fr_counter_cell stray;
	struct fr_counter *before; /* as cells, of captures that this one took the place of; NULL: of none */
	int epoll_fd;
	uint8_t *bounce; /* FR_RUN_MAX bytes, the recorder thread's */
	struct fr_look_room look;
	struct fr_cgroup_identity cgroup; /* that is recorded */
	unsigned divisor;		  /* of all frequencies, as they are now */
	bool has_overwrite, system_wide, enable_on_exec, filters_set;
};

/* filter.c: whether the kernel takes the users' filters, tried on events that are opened for it. */
int fr_filters_check(const struct fr_capture *c, struct fr_diag *d);
/* Set them, and that none of TIDS (n may be 0) is recorded. Once. */
int fr_filters_set(struct fr_capture *c, const pid_t *tids, size_t n, struct fr_diag *d);
