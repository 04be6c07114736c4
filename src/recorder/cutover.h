/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The instant at which one capture replaces another, while both record. A record that is older than the
 * instant is taken from the old capture, a younger one from the new capture.
 *
 * Both captures make a record of the same thing, and the kernel reads the clock for each of them. So near the
 * instant the two records of one thing may lie on both sides of it. Within FR_CUTOVER_NEAR_NS a record of the
 * new capture therefore counts only if the old capture gave no twin: a record that is equal except for the id
 * of its event and its time.
 *
 * Recorder thread, except for new and free.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_CUTOVER_NEAR_NS 100000ULL /* an interrupt may run between the two readings */

struct fr_cutover;

/* NULL: no memory. */
struct fr_cutover *fr_cutover_new(void);
/* NULL-safe; returns NULL. */
struct fr_cutover *fr_cutover_free(struct fr_cutover *c);
/* The instant is NS. */
void fr_cutover_set_time(struct fr_cutover *c, uint64_t ns);

/* A run of records from FIRST_NS to LAST_NS is to be kept as a whole, without a look at each record: of the
   old capture, and of the new one. */
bool fr_cutover_keeps_old_run(const struct fr_cutover *c, uint64_t first_ns, uint64_t last_ns);
bool fr_cutover_keeps_new_run(const struct fr_cutover *c, uint64_t first_ns, uint64_t last_ns);
/* H (in our layout) is to be kept: of the old capture; and of the new one, after the old one has given all.
 */
bool fr_cutover_keeps_old(struct fr_cutover *c, const struct perf_event_header *h);
bool fr_cutover_keeps_new(struct fr_cutover *c, const struct perf_event_header *h);
