/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The interface between the code that drains kernel rings and the code that receives the records. */

#include <stddef.h>
#include <stdint.h>

/* A run of records: whole records in the layout of perfdata/record.h, one after the other. A run has at most
   FR_RUN_MAX bytes. For runs of samples from a ring that is not overwritable, fr_capture_ops.samples_max can
   set another limit. The memory is valid until the function that gets the run returns. */
#define FR_RUN_MAX (64u << 10)
struct fr_run {
	const void *data;
	size_t len;
	uint32_t records;	    /* number of records */
	uint64_t first_ns, last_ns; /* smallest and largest time */
	unsigned ring;		    /* a run of samples: fr_event.ring of all of them */
	unsigned cpu_index;	    /* of the kernel ring that the run comes from */
};

/* The functions that receive the records of a drain. */
struct fr_capture_ops {
	void (*sideband)(void *ctx, const struct fr_run *run);
	void (*samples)(void *ctx, const struct fr_run *run);
	/* Records of a ring that is shared with the capture that this capture replaces, or that replaces this
	   one (AUX areas). None of them comes twice. */
	void (*shared)(void *ctx, const struct fr_run *run);
	/* Samples from the BPF rings of this capture, and from those of the previous instance
	   (fr_capture_adopt()). NULL: `samples` gets them. */
	void (*bpf)(void *ctx, const struct fr_run *run);
	void (*adopted)(void *ctx, const struct fr_run *run);
	void *ctx;
	size_t samples_max; /* most bytes in a run of samples from a ring that is not overwritable; 0:
			       FR_RUN_MAX */
};
