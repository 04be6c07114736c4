/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The cut-over: a new capture replaces the old one while both record. Records from before the cut-over time
 * are taken from the old capture, later records from the new capture.
 *
 * While both record, the kernel makes two records of the same thing, one for each capture, and reads the
 * clock for each. Near the cut-over time, one of the two records may be earlier than the cut-over time, and
 * the other one later. So a record of the new capture that is within FR_CUTOVER_NEAR_NS of the cut-over time
 * is dropped only if it is a duplicate. It is a duplicate if a record that was taken from the old capture is
 * equal, except for the id of the event and the time.
 *
 * Recorder thread, except for new and free.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_CUTOVER_NEAR_NS 100000ULL /* an interrupt may run between the two readings of the clock */

struct fr_cutover;

/* Returns NULL if there is no memory. */
struct fr_cutover *fr_cutover_new(void);
/* NULL-safe; returns NULL. */
struct fr_cutover *fr_cutover_free(struct fr_cutover *c);
/* Set the cut-over time. The next records come from the old capture. */
void fr_cutover_set_time(struct fr_cutover *c, uint64_t ns);
/* Call it when the old capture has given all its records. The next records come from the new capture. */
void fr_cutover_begin_new(struct fr_cutover *c);

/* Returns true if all records with times from FIRST_NS to LAST_NS are kept. Returns false if
   fr_cutover_keeps() has to decide about each record. */
bool fr_cutover_keeps_run(const struct fr_cutover *c, uint64_t first_ns, uint64_t last_ns);
/* Returns whether the record H (in the layout of perfdata/record.h) is kept. Call it once for each record. */
bool fr_cutover_keeps(struct fr_cutover *c, const struct perf_event_header *h);
