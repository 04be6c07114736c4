/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The records of one file in the order of their time. Files are in the order in which rings were drained,
 * with a FINISHED_ROUND between rounds: what is older than all that was known a round ago can come no more.
 */

#include "perfdata/reader.h"

/* What is held of one file: a batch is sorted and handed out when this much came in … */
#define FR_CURSOR_BATCH (1u << 20)
/* … and where no round says that it may be, its older half is when this much did. */
#define FR_CURSOR_MAX (64u << 20)

/* One record. CLASS orders equal times: side-band before samples. */
struct fr_cursor_record {
	uint64_t key; /* its time; 0: before all; where it has none, that of the record before it */
	const struct perf_event_header *record;
	bool sample;
};

/* One record of a batch, where it stands in the batch's bytes. */
struct fr_cursor_entry {
	uint64_t key;
	uint64_t order; /* of arrival; the top bit is set for samples, so that side-band goes first */
	uint32_t at, size;
};

#define FR_CURSOR_SAMPLE (1ULL << 63)

/* Records in a row, in the order of their time. */
struct fr_cursor_run {
	const struct fr_cursor_entry *entries;
	size_t n;
	const uint8_t *bytes;
};

struct fr_cursor;

/* READER is borrowed. What stands before the first FINISHED_ROUND, up to the first sample, is the state of
   processes at a sample file's begin; it is left out when the time that it has is one that another file tells
   of, from KNOWN_FROM to KNOWN_TO (ns; 0 and 0: none). 0 or -ENOMEM. */
int fr_cursor_new(struct fr_reader *reader, uint64_t known_from, uint64_t known_to, struct fr_cursor **ret);
struct fr_cursor *fr_cursor_free(struct fr_cursor *c);

/* The next record in RET, valid until the next call. 1, 0: no more, negative errno. */
int fr_cursor_next(struct fr_cursor *c, struct fr_cursor_record *ret);

/* Records that fr_cursor_next() would give now, as far as they are at hand and older than OLDER_THAN, in RET
   (N may be 0), valid until the next call of either. */
void fr_cursor_take_run(struct fr_cursor *c, uint64_t older_than, struct fr_cursor_run *ret);

/* Both have given a record. Where C goes on, from that one, as OTHER does from its own, byte for byte, C
   leaves those records out: whole times only, so that what is left of a time can still be compared. Returns
   how many; where it is any, RET is what C now has instead of the record that it gave. */
size_t fr_cursor_skip_common(
	struct fr_cursor *c, const struct fr_cursor *other, struct fr_cursor_record *ret);

/* Records left out as state, so far. */
uint64_t fr_cursor_state(const struct fr_cursor *c);
