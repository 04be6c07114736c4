/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Returns the records of one file in the order of their time. A file has them in the order in which kernel
 * rings were drained, with a FINISHED_ROUND after each round. A record after a round is not older than the
 * newest record before the previous round.
 */

#include "perfdata/reader.h"

/* A cursor collects this many bytes of a file before it sorts them. */
#define FR_CURSOR_BATCH (1u << 20)
/* After this many bytes without a round, it releases the older half of them. */
#define FR_CURSOR_MAX (64u << 20)

struct fr_cursor_record {
	uint64_t key; /* its time, or the key of the previous record if it has no time */
	const struct perf_event_header *record;
	bool sample; /* at equal times, side-band comes before samples */
};

/* A record of a batch. AT is its place in the bytes of the batch. */
struct fr_cursor_entry {
	uint64_t key;
	uint64_t order; /* its number in the file; a sample also has FR_CURSOR_SAMPLE, to come after side-band
			 */
	uint32_t at, size;
};

#define FR_CURSOR_SAMPLE (1ULL << 63)

/* Consecutive records in the order of their time. */
struct fr_cursor_run {
	const struct fr_cursor_entry *entries;
	size_t n;
	const uint8_t *bytes;
};

struct fr_cursor;

/* Makes a cursor. READER is borrowed. Before its first round and its first sample, a file has initial state:
   the processes at its start. Another file may cover the time from KNOWN_FROM to KNOWN_TO (ns; 0 and 0: none
   does). The cursor skips initial state within that time. Returns 0 or -ENOMEM. */
int fr_cursor_new(struct fr_reader *reader, uint64_t known_from, uint64_t known_to, struct fr_cursor **ret);
/* Accepts NULL; returns NULL. */
struct fr_cursor *fr_cursor_free(struct fr_cursor *c);

/* Gets the next record, which is valid until the next call. Returns 1; 0 if there is none; or a negative
 * errno.
 */
int fr_cursor_next(struct fr_cursor *c, struct fr_cursor_record *ret);

/* Consumes the next records that are ready and older than OLDER_THAN (ns). There may be none. *RET is valid
   until the next call for C. */
void fr_cursor_take_run(struct fr_cursor *c, uint64_t older_than, struct fr_cursor_run *ret);

/* Compares the records of both cursors, byte for byte, from the last returned ones on. C skips the equal
   records at their start. It skips all records of a time or none of them, so that the others can be compared
   one by one. Returns the number of skipped records. If it is not 0, *RET replaces the last record of C. */
size_t fr_cursor_skip_common(
	struct fr_cursor *c, const struct fr_cursor *other, struct fr_cursor_record *ret);

/* Returns how many records of initial state were skipped so far. */
uint64_t fr_cursor_skipped_state(const struct fr_cursor *c);
