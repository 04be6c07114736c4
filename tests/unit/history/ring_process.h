/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Rings that random steps fill with records, also in a process that is killed. The records of each kind have
 * consecutive numbers (records.h). */

#include "records.h"

#include <sys/types.h>

/* The progress of a process that will be killed. It is in shared memory. Each array has a value for each kind
   of record. */
struct progress {
	_Atomic uint64_t done[2];    /* the records with smaller numbers have been appended */
	_Atomic uint64_t started[2]; /* no record with this number or a larger one has been appended */
	_Atomic uint64_t
		evicted[2]; /* the records with smaller numbers have been evicted, or are being evicted */
	_Atomic uint64_t wrong;
};

struct progress *progress_new(void);
void progress_free(struct progress *p);
void on_evicted(void *ctx, const struct fr_frame *frame);
struct fr_history_config config_of(uint64_t size, struct progress *p);
/* Append some records. Their numbers continue those of the previous call for this kind. Returns the result of
   fr_history_append() or fr_history_append_sideband(). */
int append_run(struct fr_history *h, struct progress *p, enum test_kind kind, uint64_t *random);
/* Returns a retained snapshot of the ring (its frames are not overwritten), or NULL if nothing can be
   retained. */
struct fr_snapshot *retain(struct fr_history *h);
/* Make a random change to a ring. The change never leaves pinned frames, because pinned frames can make the
   ring drop new records. Returns 0, unless an append or a seal has failed. */
int random_step(struct fr_history *h, struct progress *p, struct fr_snapshot **retained, uint64_t *random);
_Noreturn void append_until_killed(struct fr_history *h, struct progress *p, uint64_t random);
/* Read all records of the frames and of the open chunk, which is not sealed. Fails the test if a record
   between them is missing. */
struct test_contents read_all(struct fr_history *h);
void expect_described(
	const struct test_contents *c, const struct fr_history_adopted *adopted, const struct fr_history *h);
/* Check that C has the newest records. If IS_WHOLE is true, also check that C has all records that were not
   evicted. */
void expect_newest(struct progress *p, const struct test_contents *c, bool is_whole);
/* Let the numbers of the next records continue the numbers in C. */
void continue_from(struct progress *p, const struct test_contents *c);
int dup_fd(int fd);
/* Kill PID after US microseconds, and wait for it. */
void kill_after(pid_t pid, useconds_t us);
/* Let a child process append to H, and kill it at a random time. If FULL is true, kill it only after the ring
   has evicted records. Frees H. Returns the descriptor of the ring. */
int run_and_kill(struct fr_history *h, struct progress *p, bool full, uint64_t *random);
struct fr_history *adopt(int fd, uint64_t size, struct progress *p, struct fr_history_adopted *ret);
/* Make a ring, and fill it by STEPS random steps. */
struct fr_history *ring_with_records(uint64_t size, unsigned steps, struct progress *p, uint64_t *random);
