/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Removes duplicates. The windows of dumps overlap, so several files can have the same record. But one file
 * can also have several records with the same bytes, which are not duplicates. So the output has a record as
 * often as the input that has this record most often.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

/* The largest number of bytes of records with the same time that are compared. The limit bounds the
   memory. */
#define FR_DEDUP_MAX (64u << 20)

/* The records of one time. If all members are zeros, there are no records. */
struct fr_dedup {
	struct fr_dedup_entry *entries;
	size_t bytes;
	bool overflow; /* since the last fr_dedup_clear(), a record was not compared because of the limit */
};

/* Forgets all records. Call it before you add records of another time. */
void fr_dedup_clear(struct fr_dedup *g);
/* Returns 1 if RECORD of INPUT has to be written, 0 if it is a duplicate, or -ENOMEM. Add all records that
   one input has of this time, and then all records of the next input. */
int fr_dedup_add(struct fr_dedup *g, size_t input, const struct perf_event_header *record);
