/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Removes duplicates. The windows of dumps overlap, so several files may have one record. But one file may
 * also have two records with the same bytes. So the output has each record of a time as often as the input
 * that has it most often.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

/* The limit of compared bytes of one time, so that memory does not grow with the input. */
#define FR_DEDUP_MAX (64u << 20)

/* All zeros is empty. */
struct fr_dedup {
	struct fr_dedup_entry *entries;
	size_t bytes;
	bool overflow; /* a record was not compared since the last fr_dedup_clear() */
};

/* Forgets all records. Call it before the records of another time. */
void fr_dedup_clear(struct fr_dedup *g);
/* Returns 1 if RECORD of INPUT is to be written, 0 if it is a duplicate, or -ENOMEM. The records of an input
   come one after the other. */
int fr_dedup_add(struct fr_dedup *g, size_t input, const struct perf_event_header *record);
