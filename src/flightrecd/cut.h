/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The instant at which one capture takes over from another, while both record: what is older is the old
 * one's. But one thing that happens is a record of each, and the kernel reads the clock for each, so at the
 * very instant one may be older and the other not. So of what the new one has within FR_CUT_NEAR_NS, that
 * counts of which the old one gave no twin: a record that is the same but for its event's id and its time.
 *
 * Recorder thread, but for new and free.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_CUT_NEAR_NS 100000ULL /* an interrupt may run between the two readings */

struct fr_cut;

/* NULL: no memory. NULL-safe; returns NULL. */
struct fr_cut *fr_cut_new(void);
struct fr_cut *fr_cut_free(struct fr_cut *c);
void fr_cut_at(struct fr_cut *c, uint64_t ns);

/* Whether a run of records from FIRST to LAST is to be kept as a whole, without asking for each. */
bool fr_cut_is_old(const struct fr_cut *c, uint64_t first_ns, uint64_t last_ns);
bool fr_cut_is_new(const struct fr_cut *c, uint64_t first_ns, uint64_t last_ns);
/* Whether H (in our layout) of the old capture is to be kept; and of the new one, once the old one has given
 * all. */
bool fr_cut_keep_old(struct fr_cut *c, const struct perf_event_header *h);
bool fr_cut_keep_new(struct fr_cut *c, const struct perf_event_header *h);
