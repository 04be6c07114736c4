/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Private to perfdata/: the files reader*.c share it.
 *
 *   file ─► window ─► outer record ─┬───────────────────────────────────────► record
 *                                   ├─► head record of the pipe format ─► session
 *                                   └─► COMPRESSED ─► zstd ─► raw bytes ─────► record
 */

#include "perfdata/file_header.h"
#include "perfdata/reader.h"

#include <zstd.h>

/* Limits that hold whatever a file contains. */
#define FR_READER_WINDOW (512u << 10)	    /* bytes of the file in memory */
#define FR_READER_RAW (256u << 10)	    /* decompressed bytes that are not returned yet */
#define FR_READER_SECTION_MAX (64u << 20)   /* bytes of one feature section */
#define FR_READER_SECTIONS_MAX (256u << 20) /* bytes of all feature sections */
#define FR_READER_EVENTS_MAX 16384u
#define FR_READER_IDS_MAX (4u << 20)
/* A row of this many records for which fr_reader_is_proven() is true cannot be a coincidence. */
#define FR_READER_RESYNC_RECORDS 4

/* Returns whether the LEN bytes at P begin a zstd frame, or the skippable frame that fr_file_write_frame()
   puts before a zstd frame. */
static inline bool fr_reader_begins_frame(const void *p, size_t len)
{
	const uint8_t *b = p;

	return len >= 4 && ((b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd) ||
				   ((b[0] & 0xf0) == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18));
}

/* Returns whether at least one of the N ids is not 0. The kernel's ids begin at 1. */
static inline bool fr_reader_any_id(const void *ids, size_t n)
{
	const uint8_t *bytes = ids;

	for (size_t i = 0; i < n * sizeof(uint64_t); i++)
		if (bytes[i])
			return true;
	return false;
}

struct fr_reader {
	int fd;
	size_t ahead_bytes; /* fr_reader_set_read_ahead() */
	bool pipe;
	uint64_t file_size;
	uint64_t data_start, data_end; /* file offsets */
	uint64_t at;		       /* file offset of the next outer record */

	/* WINDOW has the window_len bytes of the file at window_at. */
	uint8_t *window;
	uint64_t window_at;
	size_t window_len;

	/* PACKED is the part of the COMPRESSED record at compressed_at that zstd has not read yet.
	   raw[raw_start … raw_len) are the decompressed bytes that are not returned yet. */
	ZSTD_DStream *zstd;
	ZSTD_inBuffer packed;
	uint64_t compressed_at;
	bool in_frame;	     /* a zstd frame has begun and has not ended */
	bool continues;	     /* the value of in_frame at the start of this COMPRESSED record */
	bool wait_for_frame; /* after damage: skip COMPRESSED records until one begins a frame */
	uint8_t *raw;
	size_t raw_start, raw_len;

	struct fr_session session;
	const struct fr_session *better; /* from fr_reader_replace_attrs(), or NULL */
	struct fr_layout *layouts;	 /* one for each event */
	size_t n_layouts;
	bool one_layout;	/* all layouts are equal */
	bool one_id_place;	/* the id has the same place in all layouts */
	struct fr_id_table ids; /* event ids to indices of events */
	size_t n_ids, section_bytes;

	struct fr_damage damage;
	uint64_t scratch[(FR_RECORD_MAX + 8) / 8]; /* an aligned copy of a record */
};

/* Notes damage at file offset AT, and adds LOST to the number of lost bytes. If this is not the first damage
   of the file, AT and TEXT are ignored. */
void fr_reader_note_damage(struct fr_reader *r, uint64_t at, uint64_t lost, const char *text);

/* reader_head.c: reads attrs, ids and feature sections of the file format. Returns 0; -EBADMSG, with a
   message in D; or another negative errno. */
int fr_reader_head(struct fr_reader *r, struct fr_diag *d);
/* Reads a section, whose size the caller has limited, into new memory. Returns 0, -ENOMEM, -EBADMSG if the
   file ends inside the section, or another negative errno. */
int fr_reader_read_section(const struct fr_reader *r, const struct file_section *section, void **ret);
/* Takes the names of events, and missing ids, from the section EVENT_DESC. Returns 0, -EBADMSG or -ENOMEM. */
int fr_reader_apply_event_desc(struct fr_reader *r);

/* reader_pipe.c: takes RECORD, which is at file offset AT, into the session if it is a head record of the
   pipe format. May move the window. Returns 1 if RECORD is a head record, and *RET_SIZE is the number of its
   bytes in the file; 0 if RECORD is not a head record; -EBADMSG if RECORD is damaged; or another negative
   errno. */
int fr_reader_pipe_record(
	struct fr_reader *r, const struct perf_event_header *record, uint64_t at, uint64_t *ret_size);

/* reader_layout.c: makes the layouts of events that were added to the session. Returns 0 or -ENOMEM. */
int fr_reader_add_layouts(struct fr_reader *r);
/* Makes all layouts again, after known events got other ids or attrs. Returns 0 or -ENOMEM. */
int fr_reader_reset_layouts(struct fr_reader *r);
/* Applies fr_reader_replace_attrs() to one event. */
void fr_reader_replace_attr(const struct fr_reader *r, struct fr_event_desc *e);
/* Returns whether the record at P is plausible: it fits into the LEFT bytes, and its size and type are
   possible for the events of the file. P need not be aligned. */
bool fr_reader_is_plausible(const struct fr_reader *r, const uint8_t *p, size_t left);
/* Returns whether the record is proven: it is plausible; and it has the id of an event, or is a
   FINISHED_ROUND or an AUXTRACE record as perf writes them, or is a COMPRESSED record that begins a zstd
   frame. */
bool fr_reader_is_proven(const struct fr_reader *r, const uint8_t *p, size_t left);
/* Returns whether a plausible record has an id that no event of the file has. */
bool fr_reader_has_unknown_id(const struct fr_reader *r, const uint8_t *p);

/* reader_zstd.c: begins to decompress the payload of the COMPRESSED record at file offset AT. Damage is noted
   and is not an error. */
void fr_reader_start_compressed(struct fr_reader *r, const uint8_t *payload, size_t len, uint64_t at);
/* Gets the next record of the zstd stream, perhaps not aligned. Returns 1, and *RET is the record; 0 if the
   stream needs the next COMPRESSED record; or -ENOMEM. */
int fr_reader_next_compressed(struct fr_reader *r, const uint8_t **ret);
/* Gives up the current zstd frame, and counts the rest of the frame as lost. After that, COMPRESSED records
   are skipped until one of them begins a frame. */
void fr_reader_drop_frame(struct fr_reader *r);
/* Ends the zstd stream after the last record of the file. If the last decompressed record is not whole, this
   is damage. */
void fr_reader_end_compressed(struct fr_reader *r);
