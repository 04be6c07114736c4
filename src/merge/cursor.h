/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A cursor returns the records of one file in the order of their times. The file has the records in the order
 * in which kernel rings were drained, with a FINISHED_ROUND after each round. (In a round, the recorder reads
 * all kernel rings once.) The records after a FINISHED_ROUND are not older than the newest record before the
 * previous FINISHED_ROUND.
 */

#include "perfdata/reader.h"

/* A cursor collects at least this many bytes of a file before it sorts them. */
#define FR_CURSOR_BATCH (1u << 20)
/* If a cursor has collected this many bytes, and no FINISHED_ROUND allows it to return a record, it returns
   the older half of these records nevertheless. */
#define FR_CURSOR_MAX (64u << 20)

struct fr_cursor_record {
	uint64_t key; /* the time of the record; if the record has no time, the key of the previous record */
	const struct perf_event_header *record;
	bool sample; /* true: the record is a sample. At equal times, side-band comes before samples */
};

/* A record of a batch. A batch is the records that are sorted together. `at` is the offset of the record in
   the bytes of the batch. */
struct fr_cursor_entry {
	uint64_t key;
	uint64_t order; /* number of the record in the file; samples also have FR_CURSOR_SAMPLE */
	uint32_t at, size;
};

#define FR_CURSOR_SAMPLE (1ULL << 63) /* makes samples come after side-band of the same time */

/* Records of one cursor that follow each other in the order of their times. */
struct fr_cursor_run {
	const struct fr_cursor_entry *entries;
	size_t n;
	const uint8_t *bytes;
};

struct fr_cursor;
struct fr_aux;

/* Makes a cursor for INPUT, the number of an input. READER is borrowed. The cursor gives the records that
   describe AUX data to fr_aux_add(AUX, INPUT, …), unless AUX is NULL, and does not return them. The records
   that come before the first sample and before the first FINISHED_ROUND of a file are the initial state of
   the file: they describe the processes at its start. KNOWN_FROM and KNOWN_TO (ns) are the start and the end
   of the time that another file covers. They are 0 if there is no such file. The cursor skips the initial
   state up to the first record with a time outside of KNOWN_FROM … KNOWN_TO. Records without a time, and the
   kernel's records about AUX data, which no other file has, are not skipped. Returns 0 or -ENOMEM. */
int fr_cursor_new(struct fr_reader *reader, struct fr_aux *aux, size_t input, uint64_t known_from,
	uint64_t known_to, struct fr_cursor **ret);
/* C may be NULL. Returns NULL. */
struct fr_cursor *fr_cursor_free(struct fr_cursor *c);

/* Gets the next record, which is valid until the next call for C. Returns 1; 0 if there are no more records;
   or a negative errno. */
int fr_cursor_next(struct fr_cursor *c, struct fr_cursor_record *ret);

/* Takes the next records that are sorted already and are older than OLDER_THAN (ns). RET->n is 0 if there is
   no such record. *RET is valid until the next call for C. */
void fr_cursor_take_run(struct fr_cursor *c, uint64_t older_than, struct fr_cursor_run *ret);

/* Compares the records of C and OTHER byte for byte, beginning with the record that each cursor returned
   last. As long as the records are equal, C skips its records. If several records have the same time, C skips
   all of them or none: fr_dedup_add() later compares the records that C has not skipped. Returns the number
   of skipped records. If this number is not 0, *RET is set to the record after the skipped records, and
   replaces the record that C returned last. */
size_t fr_cursor_skip_common(
	struct fr_cursor *c, const struct fr_cursor *other, struct fr_cursor_record *ret);

/* Returns how many records of initial state the cursor has skipped so far. */
uint64_t fr_cursor_skipped_state(const struct fr_cursor *c);
