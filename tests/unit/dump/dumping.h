/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A ring with known samples, a directory of its own, and dumps from the one to the other, for tests that let
   dumps fail. */

#include "dump/dump.h"
#include "history/history.h"

#include <stdbool.h>
#include <stdint.h>

struct dumping {
	char dir[64];
	int dirfd;
	struct fr_session session;
	struct fr_history *history;
	struct fr_dump_params params;
	uint64_t samples; /* in the ring */
};

/* RUNS rounds of RUN samples each, and a directory in WHERE; *STATE is a struct dumping. For cmocka: 0, or
 * -1. */
int dumping_setup(void **state, const char *where, unsigned runs, unsigned run);
int dumping_teardown(void **state);

/* What fr_dump_write() says of the whole ring; a failure has words. */
int dumping_dump(struct dumping *f, struct fr_dump_result *ret);

/* Whatever stands in the directory under a name of ours is whole: each sample of the ring is in it. Empties
   it; returns how many such files there were. */
unsigned dumping_check_directory(struct dumping *f, bool may_leave_temporary);

/* Nothing is pinned, and all samples are there. */
void dumping_check_ring(struct dumping *f);
