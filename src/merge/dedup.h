/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Removes duplicates. The windows of dumps overlap, so several files may have one record. But one file
 * may also have two records with the same bytes. So, among the records of one time, each distinct one is
 * written as often as it is in the input that has it most often.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

/* The most bytes of one time that are compared, so that memory does not grow with the input. */
#define FR_DEDUP_MAX (64u << 20)

/* Zero-initialised is empty. */
struct fr_dedup {
	struct fr_dedup_entry *entries;
	size_t bytes;
	bool overflow; /* since the last clear, a record was not compared */
};

/* Forgets all records, before those of another time. */
void fr_dedup_clear(struct fr_dedup *g);
/* Whether RECORD of INPUT is to be written: 1, 0, or -ENOMEM. The records of an input come in a row. */
int fr_dedup_add(struct fr_dedup *g, size_t input, const struct perf_event_header *record);
