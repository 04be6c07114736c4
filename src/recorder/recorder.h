/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The recorder thread: kernel rings → ring in user space. It waits only in its poll, and for 100 µs at a
 * cut-over (fr_recorder_switch()). It never logs, and allocates no memory for a sample.
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
	struct fr_capture *capture; /* all three are borrowed: stop the recorder before you free them */
	struct fr_history *history;
	struct fr_tracker *tracker;
	unsigned period_ms; /* longest time between two rounds; 0: FR_RECORDER_PERIOD_NS */
};

/* Start the thread. When this function returns, the thread drains the kernel rings. Returns 0, or a negative
   errno with D. */
int fr_recorder_start(const struct fr_recorder_config *config, struct fr_recorder **ret, struct fr_diag *d);

/* Run a last round, end the thread, and free R. NULL-safe; returns NULL. */
struct fr_recorder *fr_recorder_stop(struct fr_recorder *r);

pid_t fr_recorder_tid(const struct fr_recorder *r);

/* Make a snapshot of the ring. The snapshot has all records that were in the kernel rings before this call,
   also in the overwritable ones. Blocks for a round and a seal (milliseconds). Any thread except the
   recorder's. Returns 0 or a negative errno. */
int fr_recorder_snapshot(struct fr_recorder *r, struct fr_snapshot **ret);

/* Cut over to the capture TO, which is open and enabled. A record that both captures have is taken once.
   Afterwards the previous capture is disabled, and the caller frees it. Blocks for some rounds; the recorder
   thread sleeps for FR_CUTOVER_NEAR_NS. Any thread except the recorder's. Returns 0, or a negative errno with
   D. On an error the previous capture goes on. */
int fr_recorder_switch(struct fr_recorder *r, struct fr_capture *to, struct fr_diag *d);

struct fr_recorder_resize {
	void (*begun)(void *ctx, int fd); /* FD: the new ring; after a kill, the next instance needs both */
	void (*stepped)(void *ctx);	  /* called after each step */
	void *ctx;
};
/* Give *H, the ring of the recorder, another size. The calling thread copies the frames. Meanwhile the
   recorder thread goes on draining; it does only the last step of the resize. Snapshots wait until the resize
   has ended. Except for these two threads, no thread may use *H in this time. Returns 0 and sets *H and *RET;
   or a negative errno with D (see fr_resize_begin()), and then the ring does not change. */
int fr_recorder_resize(struct fr_recorder *r, struct fr_history **h, uint64_t size_bytes,
	const struct fr_recorder_resize *calls, struct fr_history_adopted *ret, struct fr_diag *d);

/* Returns the end of the last round, in monotonic time. If this time is not recent, the recorder thread
   hangs. Any thread. */
uint64_t fr_recorder_last_round_ns(struct fr_recorder *r);
/* The longest time between two rounds: a sample stays in a kernel ring for at most this time, and the numbers
   of `status` may be this old. */
#define FR_RECORDER_PERIOD_NS FR_NSEC_PER_SEC

/* Returns a borrowed descriptor that becomes readable when all recorded tasks have ended. If whole CPUs are
   recorded, it never becomes readable. */
int fr_recorder_ended_fd(const struct fr_recorder *r);

struct fr_recorder_rounds {
	uint64_t rounds;	    /* number of rounds so far */
	uint64_t longest_ns;	    /* longest time from a wake-up until the thread polls again */
	uint64_t longest_period_ns; /* longest time from a wake-up to the next wake-up */
};
/* Get the counters. The longest times are those since the previous call. Any thread. */
void fr_recorder_rounds(struct fr_recorder *r, struct fr_recorder_rounds *ret);
