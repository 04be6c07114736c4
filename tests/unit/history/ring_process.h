/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Rings that are filled by random steps, also in a process that is killed. The numbers of records are
 * consecutive. */

#include "records.h"

#include <sys/types.h>

/* The progress of a process that will be killed, for each kind of record. It is in shared memory. */
struct progress {
	_Atomic uint64_t done[2];    /* all smaller numbers were appended */
	_Atomic uint64_t started[2]; /* only smaller numbers may have been appended */
	_Atomic uint64_t evicted[2]; /* all smaller numbers were evicted, or are being evicted */
	_Atomic uint64_t wrong;
};

struct progress *progress_new(void);
void progress_free(struct progress *p);
void on_evicted(void *ctx, const struct fr_frame *frame);
struct fr_history_config config_of(uint64_t size, struct progress *p);
/* Append some records. Their numbers follow those of the previous call for this kind. */
int append_run(struct fr_history *h, struct progress *p, enum test_kind kind, uint64_t *random);
/* Returns a retained snapshot of the ring, or NULL if nothing can be retained. */
struct fr_snapshot *retain(struct fr_history *h);
/* Make a random change to a ring. No change pins frames, because then new records could be dropped. */
int random_step(struct fr_history *h, struct progress *p, struct fr_snapshot **retained, uint64_t *random);
_Noreturn void append_until_killed(struct fr_history *h, struct progress *p, uint64_t random);
/* Read the frames and the open chunk, which is not sealed. There must be no gaps. */
struct test_contents read_all(struct fr_history *h);
void expect_described(
	const struct test_contents *c, const struct fr_history_adopted *adopted, const struct fr_history *h);
/* Check that C has the newest records; with IS_WHOLE also that it has all records that were not evicted. */
void expect_newest(struct progress *p, const struct test_contents *c, bool is_whole);
/* Let the numbers of the next records follow those in C. */
void continue_from(struct progress *p, const struct test_contents *c);
int dup_fd(int fd);
/* Kill PID after US microseconds, and wait for it. */
void kill_after(pid_t pid, useconds_t us);
/* Let another process append to H, and kill it at a random time; with FULL, only after the ring has evicted
   records. Frees H. Returns the descriptor of the ring. */
int run_and_kill(struct fr_history *h, struct progress *p, bool full, uint64_t *random);
struct fr_history *adopt(int fd, uint64_t size, struct progress *p, struct fr_history_adopted *ret);
/* Make a ring, and fill it by STEPS random steps. */
struct fr_history *ring_with_records(uint64_t size, unsigned steps, struct progress *p, uint64_t *random);
