/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The window of a dump. */

#include "dumper/dumper.h"

struct fr_window_bounds { /* times are wall time, in microseconds */
	bool has_last, has_post, has_from, has_to;
	uint64_t last_ns, post_ns, from_usec, to_usec;
};

/* What BOUNDS ask for at NOW_NS (monotonic); *RET is what is asked for without bounds, and becomes the
   answer. RING_FIRST_NS: the oldest sample of the ring. 0; -EINVAL with D: the bounds make no sense; -ENODATA
   with D: the ring has nothing of the window. */
int fr_window_from_bounds(const struct fr_window_bounds *bounds, uint64_t now_ns, uint64_t ring_first_ns,
	struct fr_dump_asked *ret, struct fr_diag *d);

/* Set the window of JOB, and when it may be written, from what was asked for and from its trigger's time. */
void fr_dump_job_set_window(struct fr_dump_job *job);
