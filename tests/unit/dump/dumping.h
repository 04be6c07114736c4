/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A fixture: a ring with known samples, a directory, and dumps of the ring into this directory. The file also
   has the includes that the tests need. */

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
	uint64_t samples;  /* number of samples in the ring */
	uint64_t model_ns; /* the time at which the last dump asked for the process model */
};

/* Make a ring with RUNS rounds. Each round has RUN samples, 1 µs apart. If SIDEBAND is true, each round also
   has two side-band records. Make the directory in WHERE. *STATE becomes a struct dumping. Returns 0, or -1
   on failure, as cmocka expects. */
int dumping_setup(void **state, const char *where, unsigned runs, unsigned run, bool sideband);
int dumping_teardown(void **state);

/* Dump the whole ring. Its JSON has the member {"cause": "a test"}. Returns the result of fr_dump_write(),
   and checks that a failure has a message. D may be NULL. */
int dumping_dump(struct dumping *f, struct fr_dump_result *ret, struct fr_diag *d);

/* Run `perf VERB -i NAME ARGS`, which must succeed and print no error. RET gets its output, which ends with a
   NUL. Skips the test if perf is not installed. */
void dumping_perf(
	const struct dumping *f, const char *verb, const char *name, const char *args, struct fr_buf *ret);

/* Returns the number of files in the directory. */
unsigned dumping_count_files(const struct dumping *f);

/* Check that each dump in the directory has all samples of the ring, and that there is no temporary file.
   Then remove all files. Returns the number of dumps. */
unsigned dumping_check_directory(struct dumping *f);

/* Check that no frame is pinned, and that the ring has all samples. */
void dumping_check_ring(struct dumping *f);
