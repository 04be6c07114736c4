/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The recorder thread: kernel rings → ring in user space. It sleeps in its poll only, never logs, and
 * allocates nothing on the path of a sample.
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

/* When this returns, the thread drains. 0 or a negative errno with D. */
int fr_recorder_start(const struct fr_recorder_config *config, struct fr_recorder **ret, struct fr_diag *d);

/* Drains a last time, ends the thread, frees. NULL-safe; returns NULL. */
struct fr_recorder *fr_recorder_stop(struct fr_recorder *r);

pid_t fr_recorder_tid(const struct fr_recorder *r);

/* Take a snapshot of the ring that has everything that the kernel had before this call. Blocks for a drain
   and a seal (milliseconds). Any thread but the recorder's. 0 or a negative errno. */
int fr_recorder_snapshot(struct fr_recorder *r, struct fr_snapshot **ret);

/* Cut over to the capture TO, which is open and enabled. Each record that both captures have is taken once.
   The previous capture is disabled after its last drain, and is the caller's to free. Blocks for a drain.
   Any thread but the recorder's. 0; a negative errno with D: nothing has changed. */
int fr_recorder_switch(struct fr_recorder *r, struct fr_capture *to, struct fr_diag *d);

struct fr_recorder_resize {
	void (*begun)(void *ctx, int fd); /* FD is the new ring; the next instance needs it, too */
	void (*stepped)(void *ctx);	  /* called now and then, for long resizes */
	void *ctx;
};
/* Give *H, the recorder's ring, another size. The calling thread copies; the recorder goes on draining and
   does only the last step itself. Snapshots wait until the resize has ended, and no other thread uses *H. 0,
   with *RET; a negative errno with D (see fr_resize_begin()): nothing has changed. */
int fr_recorder_resize(struct fr_recorder *r, struct fr_history **h, uint64_t size_bytes,
	const struct fr_recorder_resize *calls, struct fr_history_adopted *ret, struct fr_diag *d);

/* When the last round ended (monotonic): not long ago, if the recorder lives. Any thread. */
uint64_t fr_recorder_last_round_ns(struct fr_recorder *r);
/* How long a sample may stay in a kernel ring that does not fill up. The numbers of `status` are that old. */
#define FR_RECORDER_PERIOD_NS FR_NSEC_PER_SEC

/* Readable when every recorded task has ended; never, where the machine is recorded. Borrowed. */
int fr_recorder_ended_fd(const struct fr_recorder *r);

struct fr_recorder_rounds {
	uint64_t rounds;	    /* so far */
	uint64_t longest_ns;	    /* from a wake-up to the end of its round, since the last call */
	uint64_t longest_period_ns; /* from a wake-up to the next one, since the last call */
};
/* Any thread. */
void fr_recorder_rounds(struct fr_recorder *r, struct fr_recorder_rounds *ret);
