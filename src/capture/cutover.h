/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The cut-over: a new capture (opened events with their kernel rings) replaces the old capture while both
 * captures record. Records from before the cut-over time are taken from the old capture, later records from
 * the new capture.
 *
 * While both captures record, the kernel makes two records of each incident, one for each capture, and reads
 * the clock for each record. Near the cut-over time T, it is possible that one of the two records is earlier
 * than T, and the other record later. So a record of the new capture that is within FR_CUTOVER_NEAR_NS of T
 * is dropped only if it is a duplicate. It is a duplicate if a record that was taken from the old capture is
 * equal, except for the id of the event and the time, and if the two times differ by at most
 * FR_CUTOVER_NEAR_NS. docs/design/97 has the ranges in which duplicates are searched.
 *
 * Only the recorder thread calls these functions, except fr_cutover_new() and fr_cutover_free().
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Interrupts can run between the two readings of the clock, or the hypervisor can take the CPU away. The
   timer interrupt of a virtual machine took up to 0.14 ms. */
#define FR_CUTOVER_NEAR_NS 1000000ULL
/* Records of the old capture are remembered from this time before the cut-over time on. So the recorder waits
   for this time between the previous round and the cut-over time. */
#define FR_CUTOVER_WAIT_NS (3 * FR_CUTOVER_NEAR_NS)

struct fr_cutover;

/* Returns NULL if there is no memory. */
struct fr_cutover *fr_cutover_new(void);
/* NULL is allowed; returns NULL. */
struct fr_cutover *fr_cutover_free(struct fr_cutover *c);
/* Sets the cut-over time, and begins with records of the old capture: the next calls of
   fr_cutover_keeps_run() and fr_cutover_keeps() are about records of the old capture. */
void fr_cutover_set_time(struct fr_cutover *c, uint64_t ns);
/* The next calls of fr_cutover_keeps_run() and fr_cutover_keeps() are about records of the old capture. */
void fr_cutover_begin_old(struct fr_cutover *c);
/* Call this function when all records of the old capture have been read. The next calls of
   fr_cutover_keeps_run() and fr_cutover_keeps() are about records of the new capture. */
void fr_cutover_begin_new(struct fr_cutover *c);

/* Returns true if all records of a run with times from FIRST_NS to LAST_NS are kept. Returns false if
   fr_cutover_keeps() has to decide about each record. */
bool fr_cutover_keeps_run(const struct fr_cutover *c, uint64_t first_ns, uint64_t last_ns);
/* Returns whether the record H (in the layout of perfdata/record.h) is kept. Call this function once for each
   record. */
bool fr_cutover_keeps(struct fr_cutover *c, const struct perf_event_header *h);
