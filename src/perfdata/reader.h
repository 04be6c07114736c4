/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads perf.data in the file and the pipe format. The file may be damaged or hostile: the reader checks each
 * length before it uses it, limits its memory whatever the file says, and returns the whole records before
 * and after damage. It decompresses COMPRESSED records (type 81) on the way: the caller gets the records
 * inside. It uses pread(), so a file that is truncated meanwhile is an early end and no SIGBUS. One thread at
 * a time.
 */

#include "base/diag.h"
#include "perfdata/record.h"
#include "perfdata/session.h"

struct fr_reader;

/* The data of a file that the reader could not return, for a report. */
struct fr_damage {
	bool damaged;
	bool only_tail;	     /* only the last record is not whole: a live file, or its writer died */
	uint64_t offset;     /* of the first damage in the file */
	uint64_t lost_bytes; /* of the data section, which gave no record */
	uint64_t aux_bytes;  /* of AUX payloads, which the reader skips */
	char text[160];	     /* describes the first damage */
};

/* The places of id and time in the records of an event, in bytes. 0: the record has none. */
struct fr_layout {
	uint16_t sample_id; /* from the start of a SAMPLE */
	uint16_t sample_time;
	uint16_t sample_min; /* size of the fixed part of a SAMPLE */
	uint16_t tail_id;    /* back from the end of any other kernel record */
	uint16_t tail_time;
	uint16_t tail_size;
};

/* The layout that the kernel uses for ATTR. */
void fr_layout_from_attr(const struct perf_event_attr *attr, struct fr_layout *ret);

/* Opens PATH. May wait for a disk. The caller frees RET. 0; -EBADMSG with D (no perf.data, or nothing in it
   is usable); -ENOMEM; or another negative errno with D. A file without a usable feature table, or with a
   wrong data size, opens: see fr_reader_damage(). */
int fr_reader_open(const char *path, struct fr_reader **ret, struct fr_diag *d);
/* Returns NULL. R may be NULL. */
struct fr_reader *fr_reader_free(struct fr_reader *r);

/* From now on, asks the kernel to read AHEAD_BYTES more than are wanted yet (0: leaves it to the kernel). */
void fr_reader_set_read_ahead(struct fr_reader *r, size_t ahead_bytes);

/* R owns it. In pipe format it grows while records are read, and pointers into it are valid until the next
   fr_reader_next(). */
const struct fr_session *fr_reader_session(const struct fr_reader *r);
bool fr_reader_is_pipe(const struct fr_reader *r);
/* The open file, for flock() and fstat(). R owns it. */
int fr_reader_fd(const struct fr_reader *r);

/* The next record, aligned to 8 and valid until the next call. RET_OFFSET (may be NULL): the file offset of
   it, or of its COMPRESSED record. In pipe format, the records of the head (ATTR, FEATURE, TRACING_DATA,
   EVENT_UPDATE, BUILD_ID) go into the session and are not returned. AUX payloads are skipped. 1: a record; 0:
   the end, see fr_reader_damage(); or a negative errno: reading failed. */
int fr_reader_next(struct fr_reader *r, const struct perf_event_header **ret, uint64_t *ret_offset);

/* The time of a record of fr_reader_next(), in ns of the events' clock; 0 if it has none. */
uint64_t fr_reader_time(const struct fr_reader *r, const struct perf_event_header *record);

/* R owns it. Complete after fr_reader_next() returned 0. */
const struct fr_damage *fr_reader_damage(const struct fr_reader *r);
/* Replaces the attr of each event by that of the event in BY that shares an id with it. For a head that is
   damaged; before the first fr_reader_next(). BY outlives R. 0 or -ENOMEM. */
int fr_reader_replace_attrs(struct fr_reader *r, const struct fr_session *by);
/* Bytes of the file, consumed and in all. */
void fr_reader_progress(const struct fr_reader *r, uint64_t *ret_done, uint64_t *ret_total);
