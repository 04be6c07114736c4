/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads perf.data in the file and the pipe format. The file may be damaged or hostile: the reader checks each
 * length before it uses it, needs only a limited amount of memory, and returns the whole records before and
 * after damage. It decompresses COMPRESSED records (type 81): the caller gets the records in them. It uses
 * pread(): if the file is truncated meanwhile, the reader reaches the end early, and there is no SIGBUS. One
 * thread at a time may use a reader.
 */

#include "base/diag.h"
#include "perfdata/id_table.h"
#include "perfdata/record.h"
#include "perfdata/session.h"

struct fr_reader;

/* The damage of a file: the data that the reader could not return. */
struct fr_damage {
	bool damaged;
	/* The only damage is that the last record is not whole: the writer has not finished this record yet,
	   or has died. */
	bool only_tail;
	uint64_t offset;     /* file offset of the first damage */
	uint64_t lost_bytes; /* bytes of the data section that are in no returned record */
	char text[160];	     /* describes the first damage */
};

/* The places of id and time in the records of an event, in bytes. 0: the records do not have this field. */
struct fr_layout {
	uint16_t sample_id; /* offset from the start of a SAMPLE */
	uint16_t sample_time;
	uint16_t sample_min; /* the size of the fixed part of a SAMPLE */
	uint16_t tail_id;    /* distance of the id from the end of any other kernel record */
	uint16_t tail_time;
	uint16_t tail_size; /* the size of the sample id in any other kernel record */
};

/* Computes the layout that the kernel uses for ATTR. */
void fr_layout_from_attr(const struct perf_event_attr *attr, struct fr_layout *ret);

/* Opens PATH. Can wait for a disk. The caller frees RET. Returns 0; -EBADMSG if PATH is not a perf.data file,
   or its head is not usable; -ENOMEM; or another negative errno. On failure, D gets a message, except for
   -ENOMEM. A file with a wrong data size or without a usable feature table can be opened: see
   fr_reader_damage(). */
int fr_reader_open(const char *path, struct fr_reader **ret, struct fr_diag *d);
/* Accepts NULL; returns NULL. */
struct fr_reader *fr_reader_free(struct fr_reader *r);

/* After this call, each read also asks the kernel to read the next AHEAD_BYTES into its cache (0: the kernel
   decides how much it reads ahead). */
void fr_reader_set_read_ahead(struct fr_reader *r, size_t ahead_bytes);

/* Returns the session, which R owns. In pipe format the session grows while records are read, and pointers
   into it are valid until the next fr_reader_next(). */
const struct fr_session *fr_reader_session(const struct fr_reader *r);
bool fr_reader_is_pipe(const struct fr_reader *r);
/* Returns the open file, which R owns, for flock() and fstat(). */
int fr_reader_fd(const struct fr_reader *r);

/* Reads the next record, which is aligned to 8 and valid until the next call. *RET_OFFSET (may be NULL) is
   the file offset of the record, or of the COMPRESSED record that contains it. In pipe format, the records of
   the head (ATTR, FEATURE, TRACING_DATA, EVENT_UPDATE, BUILD_ID) go into the session and are not returned.
   An AUXTRACE record has all fields of struct fr_record_auxtrace. Its AUX data is not read: it is in the
   file, at *RET_OFFSET + header.size. Returns 1, and *RET is the record; 0 at the end (see
   fr_reader_damage()); or a negative errno. */
int fr_reader_next(struct fr_reader *r, const struct perf_event_header **ret, uint64_t *ret_offset);

/* Returns the index in the session of the event that has ID, or FR_ID_UNKNOWN. */
uint32_t fr_reader_find_event(const struct fr_reader *r, uint64_t id);

/* Returns the time of a record of fr_reader_next(), in ns of the events' clock; 0 if the record has no
   time. */
uint64_t fr_reader_time(const struct fr_reader *r, const struct perf_event_header *record);

/* Returns the size of the sample id at the end of RECORD, which is not a sample. */
size_t fr_reader_tail_size(const struct fr_reader *r, const struct perf_event_header *record);

/* Returns the damage, which R owns. It is complete after fr_reader_next() has returned 0. */
const struct fr_damage *fr_reader_damage(const struct fr_reader *r);
/* For a file with a damaged head: if an event of the file and an event of BY have an id in common, the event
   of the file gets the attr of the event of BY. Call it before the first fr_reader_next(). BY must exist
   until R is freed. Returns 0 or -ENOMEM. */
int fr_reader_replace_attrs(struct fr_reader *r, const struct fr_session *by);
/* RET_DONE gets the file offset up to which the file was read. RET_TOTAL gets the file offset at which the
   data ends. */
void fr_reader_progress(const struct fr_reader *r, uint64_t *ret_done, uint64_t *ret_total);
