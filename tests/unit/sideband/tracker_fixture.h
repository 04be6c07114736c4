/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A tracker with a directory of its own, and what it asks of ring and recorder. */

#include "events.h"
#include "perfdata/session.h"
#include "sideband/tracker.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SECTION_MAX (1u << 20)

struct fixture {
	char path[64];
	int dirfd;
	struct fr_session session;
	struct fr_tracker_config config; /* may be changed until keeping_start() */
	struct fr_tracker *tracker;
	pthread_mutex_t lock; /* of what follows */
	uint64_t hold_ns;
	bool held;
	struct fr_buf injected;
};

/* Of a test of cmocka: *STATE is a struct fixture, without a tracker. */
int keeping_setup(void **state);
int keeping_teardown(void **state);
void keeping_start(struct fixture *f);

/* How long something may take before it is taken for a hang, on this machine as it is now: after a scan the
   tracker rests for nine times as long as it took. */
uint64_t keeping_limit_ns(struct fixture *f);
