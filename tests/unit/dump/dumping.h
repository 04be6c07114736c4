/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A fixture: a ring with known samples, a directory, and dumps of the ring into it. Also the includes of the
   tests that use it. */

#include "../unit.h"
#include "base/cleanup.h"
#include "dump/dump.h"
#include "history/history.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct dumping {
	char dir[64];
	int dirfd;
	struct fr_session session;
	struct fr_history *history;
	struct fr_dump_params params;
	uint64_t samples;  /* in the ring */
	uint64_t model_ns; /* the time at which the last dump asked for the process model */
};

/* Append RUNS rounds of RUN samples each, 1 µs apart, and with SIDEBAND two records of side-band for each
   round. The directory is in WHERE. *STATE becomes a struct dumping. Returns 0, or -1 as cmocka wants it. */
int dumping_setup(void **state, const char *where, unsigned runs, unsigned run, bool sideband);
int dumping_teardown(void **state);

/* Dump the whole ring with the members {"cause": "a test"}. Returns what fr_dump_write() returns; a failure
   has a message. D may be NULL. */
int dumping_dump(struct dumping *f, struct fr_dump_result *ret, struct fr_diag *d);

/* Run `perf VERB -i NAME ARGS`, which succeeds and prints no error. RET gets its output, ended by a NUL. The
   test is skipped if perf is not installed. */
void dumping_perf(
	const struct dumping *f, const char *verb, const char *name, const char *args, struct fr_buf *ret);

/* The number of files in the directory. */
unsigned dumping_count_files(const struct dumping *f);

/* Check that each dump in the directory holds all samples of the ring, and that there is no temporary file.
   Empties the directory. Returns how many dumps there were. */
unsigned dumping_check_directory(struct dumping *f);

/* Check that nothing is pinned, and that the ring holds all samples. */
void dumping_check_ring(struct dumping *f);
