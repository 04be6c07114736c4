/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The recorder thread: kernel rings → ring in user space. It sleeps in its poll only, never logs, and
 * allocates nothing on the path of a sample. Other threads ask it for one thing: a snapshot of all that
 * happened until now.
 */

#include "base/clock.h"
#include "base/diag.h"
#include "capture/capture.h"
#include "history/history.h"
#include "sideband/tracker.h"

#include <stdint.h>
#include <sys/types.h>

struct fr_recorder;

struct fr_recorder_config {
	struct fr_capture *capture; /* all three borrowed; free the recorder first */
	struct fr_history *history;
	struct fr_tracker *tracker;
	unsigned period_ms; /* between rounds, at most; 0: FR_RECORDER_PERIOD_NS */
};

/* The thread is up, and drains, when this returns. */
int fr_recorder_start(const struct fr_recorder_config *config, struct fr_recorder **ret, struct fr_diag *d);

/* Drains a last time, ends the thread, frees. */
struct fr_recorder *fr_recorder_stop(struct fr_recorder *r);

pid_t fr_recorder_tid(const struct fr_recorder *r);

/* Everything that the kernel had when this was called is in the snapshot. Blocks for a drain and a seal
   (milliseconds); any thread but the recorder's. 0 or a negative errno. */
int fr_recorder_snapshot(struct fr_recorder *r, struct fr_snapshot **ret);

/* From now on TO is drained, which is open and enabled, instead of the capture of before, which is disabled
   after its last drain and is the caller's to free: of what both have, each record is taken once. Blocks for
   a drain; main thread. A negative errno with D: nothing has changed. */
int fr_recorder_switch(struct fr_recorder *r, struct fr_capture *to, struct fr_diag *d);
/* Another size of *H, the recorder's, by the calling thread; the recorder drains meanwhile, and does but the
   last step itself. Snapshots wait for the end, and no other thread uses *H. 0; a negative errno with D, and
   then all is as it was: see fr_resize_begin(). */
struct fr_recorder_resize {
	void (*begun)(void *ctx, int fd); /* FD: of the new ring, which a next instance needs, too */
	void (*stepped)(void *ctx);	  /* now and then */
	void *ctx;
};
int fr_recorder_resize(struct fr_recorder *r, struct fr_history **h, uint64_t size_bytes,
	const struct fr_recorder_resize *calls, struct fr_history_adopted *what, struct fr_diag *d);

/* When the last round ended: a recorder that lives is never long ago. Any thread. */
uint64_t fr_recorder_last_round_ns(struct fr_recorder *r);
/* How long a sample may stay in a kernel ring that does not fill up: a person who looks at `status` sees
   numbers that are this old. */
#define FR_RECORDER_PERIOD_NS FR_NSEC_PER_SEC

/* The longest ones are since the last call of fr_recorder_rounds(). */
struct fr_recorder_rounds {
	uint64_t rounds;	    /* so far */
	uint64_t longest_ns;	    /* from wake-up to the end of a round */
	uint64_t longest_period_ns; /* from wake-up to the next: a second where nothing happens */
};
/* Readable once every task that was recorded has ended (never where the machine is recorded). Borrowed. */
int fr_recorder_ended_fd(const struct fr_recorder *r);

void fr_recorder_rounds(struct fr_recorder *r, struct fr_recorder_rounds *ret);
