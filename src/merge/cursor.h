/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The records of one file in the order of their time. A file has them in the order in which kernel rings were
 * drained, with a FINISHED_ROUND after each round. After a round, no record comes that is older than the
 * newest time known one round before.
 */

#include "perfdata/reader.h"

/* A cursor collects so many bytes of one file before it sorts them … */
#define FR_CURSOR_BATCH (1u << 20)
/* … and after so many bytes without a round, it releases the older half. */
#define FR_CURSOR_MAX (64u << 20)

struct fr_cursor_record {
	uint64_t key; /* its time; 0: before all others; if it has none, that of the record before it */
	const struct perf_event_header *record;
	bool sample; /* of equal times, side-band comes before samples */
};

/* A record of a batch, at its place in the bytes of the batch. */
struct fr_cursor_entry {
	uint64_t key;
	uint64_t order; /* of arrival; FR_CURSOR_SAMPLE is set for samples, so that side-band comes first */
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

/* READER is borrowed. In front of its first round and its first sample, a file has initial state: the
   processes at its start. The cursor skips that state if its times lie within KNOWN_FROM … KNOWN_TO (ns; 0
   and 0: none), the time that another file covers. 0 or -ENOMEM. */
int fr_cursor_new(struct fr_reader *reader, uint64_t known_from, uint64_t known_to, struct fr_cursor **ret);
/* Returns NULL. C may be NULL. */
struct fr_cursor *fr_cursor_free(struct fr_cursor *c);

/* The next record, valid until the next call. 1; 0: there is none; or a negative errno. */
int fr_cursor_next(struct fr_cursor *c, struct fr_cursor_record *ret);

/* Consumes the next records that are ready and older than OLDER_THAN (ns): RET, whose N may be 0, is valid
   until the next call for C. */
void fr_cursor_take_run(struct fr_cursor *c, uint64_t older_than, struct fr_cursor_run *ret);

/* Both cursors have returned a record. If the records of C from that one on equal those of OTHER from its own
   on, byte for byte, C skips them: only all records of a time, so that the rest can be compared one by one.
   Returns how many; if any, RET replaces the record that C returned. */
size_t fr_cursor_skip_common(
	struct fr_cursor *c, const struct fr_cursor *other, struct fr_cursor_record *ret);

/* How many records of initial state were skipped so far. */
uint64_t fr_cursor_skipped_state(const struct fr_cursor *c);
