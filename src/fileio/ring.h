/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside fileio/: to wait for a ring, and not for ever. What would block, the kernel gives to threads of its
 * own; it has been seen (6.18) to leave a request to a file in their queue with no thread to take it, until
 * the process ended. So where nothing has completed for a time, all that is in flight is asked to end. What
 * nobody has begun does, with -ECANCELED; what a slow disk has goes on.
 */

#include <liburing.h>

#define FR_RING_PATIENCE_MS 5000u

/* Submit what has been prepared, of which the newest is the caller's. 0 or a negative errno: the kernel did
   not take that one. It may be tried again, or else it has to be taken back, or it goes with the next submit,
   whatever its memory holds by then. */
int fr_ring_submit(struct io_uring *ring);
void fr_ring_take_back(struct io_uring_sqe *sqe);

/* Wait for a completion of RING, on which something is in flight; RET is to be seen by the caller. 0 or a
   negative errno, but not -EINTR. */
int fr_ring_wait(struct io_uring *ring, unsigned patience_ms, struct io_uring_cqe **ret);
