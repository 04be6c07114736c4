/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reading perf.data in either format, hostile or broken as it may be: every length is checked against what is
 * there before it is used, memory is bounded whatever the file says, and what is whole before and behind the
 * damage is handed out. COMPRESSED records (type 81) are opened on the way: the caller sees the records
 * inside. Reads with pread() into a window of its own, so a file that shrinks meanwhile is an early end and
 * not a SIGBUS. One thread at a time.
 */

#include "base/diag.h"
#include "perfdata/record.h"
#include "perfdata/session.h"

#include <sys/types.h>

struct fr_reader;

/* What was wrong with a file, for the report of a salvage. */
struct fr_damage {
	bool damaged;
	bool only_tail;	 /* nothing but the last record is not whole: a live file, or a writer that died */
	uint64_t offset; /* file offset at which the first damage was found */
	uint64_t lost_bytes; /* of the data section, that gave no record */
	char what[160];
};

/* Where the id and time of an event's records stand. */
struct fr_layout {
	bool ours;	    /* as record.h has it */
	uint16_t sample_id; /* byte offset in a SAMPLE, 0: not there */
	uint16_t sample_time;
	uint16_t sample_min; /* the fixed part of a SAMPLE, in bytes */
	uint16_t tail_id;    /* byte offset back from the end of any other kernel record, 0: not there */
	uint16_t tail_time;
	uint16_t tail_size;
};

/* The layout that ATTR asks the kernel for. */
void fr_layout_from_attr(const struct perf_event_attr *attr, struct fr_layout *ret);

/* Open PATH. 0; -EBADMSG where it is no perf.data or nothing of it can be used (D says what); another
   negative errno. A file without a usable feature table, or with a data size of 0 or past its end, opens: see
   fr_reader_damage(). */
int fr_reader_open(const char *path, struct fr_reader **ret, struct fr_diag *d);
struct fr_reader *fr_reader_free(struct fr_reader *r);

/* Read the data through SOURCE (copied; its CTX outlives the reader) from now on: all of LEN bytes at AT,
   fewer only at the end of the file, or a negative errno. It is asked for places in ascending order, but for
   leaps over what is no data. */
struct fr_reader_source {
	ssize_t (*read)(void *ctx, void *data, size_t len, uint64_t at);
	void *ctx;
};
void fr_reader_set_source(struct fr_reader *r, const struct fr_reader_source *source);

/* Pipe format: grows while records are read; pointers into it are valid until the next fr_reader_next(). */
const struct fr_session *fr_reader_session(const struct fr_reader *r);
bool fr_reader_is_pipe(const struct fr_reader *r);
/* The open file, for flock() and fstat(); the reader keeps it. */
int fr_reader_fd(const struct fr_reader *r);

/* The next record, 8-byte aligned, valid until the next call; RET_OFFSET (may be NULL) is where it, or its
   COMPRESSED record, stands. Pipe format's own head records (ATTR, FEATURE, TRACING_DATA, EVENT_UPDATE,
   BUILD_ID) go into the session and are not handed out; AUX payloads are stepped over. 1: a record, 0: the
   end (whole or not, see fr_reader_damage()), negative errno: reading failed. */
int fr_reader_next(struct fr_reader *r, const struct perf_event_header **ret, uint64_t *ret_offset);

/* Time (ns of the events' clock) and event id of a record that fr_reader_next() gave, by the layout of its
   event; 0 where it has none. */
uint64_t fr_reader_time(const struct fr_reader *r, const struct perf_event_header *record);
uint64_t fr_reader_id(const struct fr_reader *r, const struct perf_event_header *record);
/* Whether every event of the file puts a time into its records. */
bool fr_reader_is_timed(const struct fr_reader *r);

const struct fr_damage *fr_reader_damage(const struct fr_reader *r);
/* Before the first fr_reader_next(): take the attr of each event from the one in BY (borrowed, as long as R
   lives) that has an id of it, where the caller knows better than a damaged head. 0 or -ENOMEM. */
int fr_reader_replace_attrs(struct fr_reader *r, const struct fr_session *by);
/* Bytes of AUX payload that were stepped over. */
uint64_t fr_reader_aux_bytes(const struct fr_reader *r);
/* Bytes of the file consumed so far and in all, for progress. */
void fr_reader_progress(const struct fr_reader *r, uint64_t *ret_done, uint64_t *ret_total);
