/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Computes the window of a dump. */

#include "dumper/dumper.h"

/* How far in the future an exact window may end. */
#define FR_WINDOW_AHEAD_MAX_NS (3600 * 1000000000ULL)

struct fr_window_bounds { /* from_usec and to_usec are wall time; from_ns and to_ns are monotonic */
	bool has_last, has_post, has_from, has_to;
	uint64_t last_ns, post_ns, from_usec, to_usec;
	/* An exact window: of the fleet. from_ns 0: from the oldest sample on; to_ns 0: to the trigger. */
	bool has_exact;
	uint64_t from_ns, to_ns;
};

/* Applies BOUNDS to *RET. Before the call, the caller sets *RET to the default window. NOW_NS is monotonic.
   RING_FIRST_NS is the time of the oldest sample in the ring. Returns 0; or a negative errno, with a message
   in D: -EINVAL if the bounds exclude each other, or if the window ends before its beginning or in the
   future; -ENODATA if the ring has no sample of the window any more. */
int fr_window_from_bounds(const struct fr_window_bounds *bounds, uint64_t now_ns, uint64_t ring_first_ns,
	struct fr_dump_asked *ret, struct fr_diag *d);

/* Sets `from_ns`, `to_ns` and `ready_ns` of JOB from its `asked` and `trigger_ns`. */
void fr_dump_job_set_window(struct fr_dump_job *job);
