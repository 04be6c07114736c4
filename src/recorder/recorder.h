/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The recorder thread moves the records of the kernel rings into the ring in user space. The thread waits
 * only in epoll_wait(), for FR_CUTOVER_WAIT_NS at a cut-over (fr_recorder_switch()), and after a restart for
 * FR_CUTOVER_NEAR_NS more. It never logs, and allocates no memory for a sample.
 */

#include "base/clock.h"
#include "base/diag.h"
#include "capture/adopt.h"
#include "capture/capture.h"
#include "history/rings.h"
#include "sideband/tracker.h"

#include <stdint.h>
#include <sys/types.h>

struct fr_recorder;

struct fr_recorder_config {
	struct fr_capture *capture; /* the pointers are borrowed: stop the recorder before you free their
				       targets */
	struct fr_rings rings;
	struct fr_tracker *tracker;
	unsigned period_ms; /* longest time between two rounds (a round is one drain of all kernel rings); 0:
			       FR_RECORDER_PERIOD_NS */
};

/* Starts the thread. When this function returns, the thread drains the kernel rings. Returns 0; or a negative
   errno, with a message in D. */
int fr_recorder_start(const struct fr_recorder_config *config, struct fr_recorder **ret, struct fr_diag *d);

/* Runs a last round, ends the thread, and frees R. NULL is allowed; returns NULL. */
struct fr_recorder *fr_recorder_stop(struct fr_recorder *r);

pid_t fr_recorder_tid(const struct fr_recorder *r);

/* Makes a snapshot of each ring. The snapshots have all records that were in the kernel rings before this
   call, also in the overwritable kernel rings. Blocks while the recorder thread does a round and compresses
   the open chunk (milliseconds). Any thread except the recorder's is allowed to call this function. Returns 0
   or a negative errno. */
int fr_recorder_snapshot(struct fr_recorder *r, struct fr_snapshots *ret);

/* Cuts over to the capture `to`, which is open and enabled: from the cut-over on, records come from `to`, and
   go to RINGS, by the ring of their event. If both captures have a record of the same incident, one of the
   two records is kept. After the cut-over, the previous capture is disabled, and the caller frees it. Blocks
   for some rounds; the recorder thread sleeps for FR_CUTOVER_WAIT_NS. Any thread except the recorder's is
   allowed to call this function. Returns 0; or a negative errno, with a message in D. On an error, the
   previous capture stays in use. */
int fr_recorder_switch(
	struct fr_recorder *r, struct fr_capture *to, const struct fr_rings *rings, struct fr_diag *d);

/* Cuts over from the adopted rings of the recorder's capture (capture/adopt.h) to the BPF rings of its own
   enabled events. Records from before the cut-over time come from the adopted rings, and later ones from the
   own rings; if both have a record of the same incident, one of them is kept. Then drops the adopted rings,
   and adds to LOST as fr_capture_end_adopted() does. Sets *RET_NS to the cut-over time. Blocks for about 15
   ms. Any thread except the recorder's is allowed to call this function. Returns 0; or a negative errno, with
   a message in D. */
int fr_recorder_take_over(
	struct fr_recorder *r, uint64_t *ret_ns, uint64_t lost[static _FR_LOSS_MAX], struct fr_diag *d);

/* Makes TO, an empty ring, the ring of the side-band. The calling thread copies the side-band of the first
   ring while recording goes on, and the recorder thread the rest. *RET_PINS gets a snapshot that keeps the
   frames of the first ring pinned: the caller frees it when it has told the code that gets evicted frames.
   Low watermarks must not be frozen. Returns 0; or a negative errno, with a message in D, and TO is freed. */
int fr_recorder_add_sideband_ring(
	struct fr_recorder *r, struct fr_history *to, struct fr_snapshot **ret_pins, struct fr_diag *d);

struct fr_recorder_resize {
	void (*begun)(void *ctx, int fd); /* called with FD, the new ring; if this process is killed during
					     the resize, the next instance needs the old and the new ring */
	void (*stepped)(void *ctx);	  /* called after each step */
	void *ctx;
};
/* Gives *H, a ring of the recorder, another size. The calling thread copies the frames. During the copy,
   the recorder thread continues to drain the kernel rings; it does only the last step of the resize.
   Snapshots wait until the resize has ended. During the resize, no thread except these two is allowed to use
   *H. Returns 0 and sets *H and *RET; or a negative errno, with a message in D (see fr_resize_begin()). On an
   error, the ring does not change. */
int fr_recorder_resize(struct fr_recorder *r, struct fr_history **h, uint64_t size_bytes,
	const struct fr_recorder_resize *calls, struct fr_history_adopted *ret, struct fr_diag *d);

/* Returns the end of the last round, in monotonic time. If this time is not recent, the recorder thread
   hangs. Any thread is allowed to call this function. */
uint64_t fr_recorder_last_round_ns(struct fr_recorder *r);
/* The longest time between two rounds. So a sample stays in a kernel ring for at most this time, and the
   numbers that `status` shows can be this old. */
#define FR_RECORDER_PERIOD_NS FR_NSEC_PER_SEC

/* Returns a borrowed descriptor that becomes readable when all recorded tasks have ended. If whole CPUs are
   recorded, the descriptor never becomes readable. */
int fr_recorder_ended_fd(const struct fr_recorder *r);

struct fr_recorder_rounds {
	uint64_t rounds;	    /* number of rounds so far */
	uint64_t longest_ns;	    /* longest time from a wake-up until the thread polls again */
	uint64_t longest_period_ns; /* longest time from a wake-up to the next wake-up */
};
/* Gets the counters. The two longest times are the maxima since the previous call. Any thread is allowed to
   call this function. */
void fr_recorder_rounds(struct fr_recorder *r, struct fr_recorder_rounds *ret);
