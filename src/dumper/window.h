/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds out the window of a dump. */

#include "dumper/dumper.h"

struct fr_window_bounds { /* times are wall time, in microseconds */
	bool has_last, has_post, has_from, has_to;
	uint64_t last_ns, post_ns, from_usec, to_usec;
};

/* Apply BOUNDS to *RET, which has the window that is used without bounds. NOW_NS: monotonic. RING_FIRST_NS:
   the time of the oldest sample in the ring. Returns 0; -EINVAL with D: the bounds make no sense; -ENODATA
   with D: the ring has no sample of the window. */
int fr_window_from_bounds(const struct fr_window_bounds *bounds, uint64_t now_ns, uint64_t ring_first_ns,
	struct fr_dump_asked *ret, struct fr_diag *d);

/* Set from_ns, to_ns and ready_ns of JOB from `asked` and trigger_ns. */
void fr_dump_job_set_window(struct fr_dump_job *job);
