/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The AUX areas of a capture: the memory into which a PMU for hardware traces (Intel PT, CoreSight, Arm SPE)
 * writes. Each AUX event has an area for each CPU. The kernel overwrites an area from its start to its end,
 * again and again (snapshot mode). A dump takes a copy of what is new in each area.
 *
 * The events of such a PMU exclude each other, so a reload cannot open an event a second time. It takes over
 * the areas of the events that stay. An area has references, and its events are open as long as there is a
 * reference.
 *
 * The functions can be called by any thread except the recorder's, and never wait for a file system, unless a
 * comment says otherwise. docs/design/12 has more.
 */

#include "capture/aux_copy.h"
#include "perfdata/auxtrace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_capture;
struct fr_aux_area;

/* References to areas. */
struct fr_aux_areas {
	struct fr_aux_area **v;
	size_t n;
};

bool fr_capture_has_aux(const struct fr_capture *c);
/* Takes a reference to each area of C. Returns 0 or -ENOMEM. */
int fr_capture_ref_aux(const struct fr_capture *c, struct fr_aux_areas *ret);
void fr_aux_areas_deinit(struct fr_aux_areas *a);

/* Looks at each area of C: stops its events for some microseconds, and notes how far the area is written.
   Call this function FR_AUX_LOOKS_PER_WINDOW times in each AuxWindow= (capture/aux_window.h), so that
   fr_aux_copy() can leave out what is older. */
void fr_capture_look_at_aux(const struct fr_capture *c);

/* A snapshot of all areas, for one dump. */
struct fr_aux_snapshot {
	struct fr_aux_areas areas;
	struct fr_aux_copy *copies; /* in the order of areas.v */
	size_t n, n_failed;	    /* n_failed: areas that were not copied, because there was no memory */
	uint64_t last_ns;	    /* the last area was stopped at this time */
	/* What the areas kept before they were stopped: ITRACE_START, AUX_OUTPUT_HW_ID. The start after the
	   copy gives newer ones, which do not belong to the dump. */
	struct fr_buf records;
};

/* Stops each area of AREAS, one after the other, copies what is new in it, and starts it again. The kernel
   then adds AUX records to the rings of the areas. What was written before the last look at or before
   SINCE_NS is left out; and also what was written after the first look at or after UNTIL_NS: a later snapshot
   can have that. Takes over AREAS, also on an error. Returns 0; or -ENOMEM, and then RET has nothing. */
int fr_aux_snapshot_take(
	struct fr_aux_areas *areas, uint64_t since_ns, uint64_t until_ns, struct fr_aux_snapshot *ret);
/* Describes the snapshot for a file. RET borrows the copies. Call this function when the recorder has drained
   the rings after fr_aux_snapshot_take(). Reads files below sysfs, so do not call it on the main thread.
   Returns 0, -ENOMEM or -E2BIG. The caller frees RET by fr_aux_data_deinit(), also on an error. */
int fr_aux_snapshot_describe(const struct fr_aux_snapshot *s, struct fr_aux_data *ret);
void fr_aux_snapshot_deinit(struct fr_aux_snapshot *s);

/* The number of the areas of a capture, the size of all together, and sums since the start of this process.
 */
struct fr_aux_stats {
	uint64_t areas, area_bytes;
	uint64_t pauses, copied_bytes;	 /* of the snapshots */
	uint64_t gap_ns, longest_gap_ns; /* of these pauses */
	uint64_t looks, longest_look_ns; /* pauses of looks */
};
void fr_capture_aux_stats(const struct fr_capture *c, struct fr_aux_stats *ret);
