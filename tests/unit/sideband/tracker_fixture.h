/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A fixture: a tracker with its own directory, and functions that act as the ring and the recorder. */

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
	struct fr_tracker_config config; /* a test may change it before fixture_start() */
	struct fr_tracker *tracker;
	pthread_mutex_t lock; /* protects the fields below */
	uint64_t freeze_ns;
	bool is_frozen;
	struct fr_buf injected;
};

/* For cmocka: *STATE becomes a struct fixture without a tracker. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
void fixture_start(struct fixture *f);
/* Give the session the feature sections of a file, because perf needs them. */
void fixture_add_features(struct fixture *f);

/* Returns the time limit of a wait. It depends on the duration of the last scan, because after a scan the
   tracker waits for nine times that duration. */
uint64_t fixture_limit_ns(struct fixture *f);
struct fr_tracker_stats fixture_stats(struct fixture *f);
/* Returns the records that the tracker has put into the ring since the last call. The caller must free
   them. */
struct fr_buf fixture_take_injected(struct fixture *f);
/* Make rounds until CONDITION is true. Fail the test after fixture_limit_ns(). */
#define fixture_wait_until(f, condition)                                                                     \
	do {                                                                                                 \
		const uint64_t _until = fr_monotonic_ns() + fixture_limit_ns(f);                             \
		while (!(condition)) {                                                                       \
			assert_true(fr_monotonic_ns() < _until);                                             \
			fr_tracker_end_round((f)->tracker, fr_monotonic_ns());                               \
			usleep(5000);                                                                        \
		}                                                                                            \
	} while (0)
/* Returns how often S is in the tail model after all records that are older than LOW_WATERMARK_NS have been
   applied to it. */
int fixture_count_in_model(struct fixture *f, uint64_t low_watermark_ns, const char *s);
/* Returns the number of files in the directory whose names begin with PREFIX. */
int fixture_count_files(struct fixture *f, const char *prefix);

/* Skip the test if perf is not installed. */
void require_perf(void);
/* Returns the number of lines of `perf script` for FILE that have both WORD and OTHER, or -1 if perf failed.
   ERROR gets the first line of its standard error. */
int fixture_count_perf_lines(
	struct fixture *f, const char *file, const char *word, const char *other, char error[static 256]);
