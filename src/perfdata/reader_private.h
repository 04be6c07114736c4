/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside perfdata/: shared by the files reader*.c.
 *
 *   file ─► window ─► outer record ─┬───────────────────────────────────────► record
 *                                   ├─► head record of the pipe format ─► session
 *                                   └─► COMPRESSED ─► zstd ─► raw bytes ─────► record
 */

#include "perfdata/reader.h"

#include <zstd.h>

/* Limits, whatever a file says. */
#define FR_READER_WINDOW (512u << 10)	    /* of the file, in memory */
#define FR_READER_RAW (256u << 10)	    /* decompressed, not yet returned */
#define FR_READER_SECTION_MAX (64u << 20)   /* one feature section */
#define FR_READER_SECTIONS_MAX (256u << 20) /* all of them */
#define FR_READER_EVENTS_MAX 16384u
#define FR_READER_IDS_MAX (4u << 20)
#define FR_READER_RESYNC_RECORDS 4 /* as many records in a row are no coincidence */

/* Whether the payload of a COMPRESSED record begins a zstd frame, or the skippable one that our writer puts
   in front of it. */
static inline bool fr_reader_begins_frame(const void *p, size_t len)
{
	const uint8_t *b = p;

	return len >= 4 && ((b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd) ||
				   ((b[0] & 0xf0) == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18));
}

/* The kernel counts ids from 1. */
static inline bool fr_reader_any_id(const uint64_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i])
			return true;
	return false;
}

/* id → event, open addressing; id 0 is an empty slot. */
struct fr_id_table {
	struct fr_id_slot {
		uint64_t id;
		uint32_t event;
	} * slots;
	size_t n, cap;
};

struct fr_reader {
	int fd;
	size_t ahead_bytes; /* fr_reader_set_read_ahead() */
	bool pipe;
	uint64_t file_size;
	uint64_t data_start, data_end, at; /* file offsets; AT: the next outer record */

	/* window[0 … window_len) are the bytes of the file from window_at on. */
	uint8_t *window;
	uint64_t window_at;
	size_t window_len;

	/* The rest of the COMPRESSED record at packed_at, and what was decompressed: raw[raw_start …
	 * raw_len). */
	ZSTD_DStream *zstd;
	ZSTD_inBuffer packed;
	uint64_t packed_at;
	bool in_frame;	     /* a frame has begun and not ended */
	bool continues;	     /* in_frame, when this COMPRESSED record began */
	bool wait_for_frame; /* after damage: skip COMPRESSED records until one begins a frame */
	uint8_t *raw;
	size_t raw_start, raw_len;

	struct fr_session session;
	const struct fr_session *better; /* of fr_reader_replace_attrs(), or NULL */
	struct fr_layout *layouts;	 /* one per event */
	size_t n_layouts;
	bool one_layout;   /* all are equal */
	bool one_id_place; /* the id has the same place in all */
	struct fr_id_table ids;
	size_t n_ids, section_bytes;

	struct fr_damage damage;
	uint64_t scratch[(FR_RECORD_MAX + 8) / 8]; /* an aligned copy of a record */
};

/* Notes damage at file offset AT that cost LOST bytes. The text of the first damage stays. */
void fr_reader_note_damage(struct fr_reader *r, uint64_t at, uint64_t lost, const char *text);

/* reader_head.c: reads attrs, ids and feature sections of the file format. 0, -EBADMSG with D, or another
   negative errno. */
int fr_reader_head(struct fr_reader *r, struct fr_diag *d);
/* Takes the names of events, and missing ids, from EVENT_DESC. 0, -EBADMSG, -ENOMEM. */
int fr_reader_apply_event_desc(struct fr_reader *r);

/* reader_pipe.c: takes a head record of the pipe format, which is at file offset AT, into the session.
   May move the window. 1: done, it takes RET_SIZE bytes of the file; 0: not a head record; -EBADMSG: damaged;
   or another negative errno. */
int fr_reader_pipe_record(
	struct fr_reader *r, const struct perf_event_header *record, uint64_t at, uint64_t *ret_size);

/* reader_layout.c. After events were added to the session. 0 or -ENOMEM. */
int fr_reader_add_layouts(struct fr_reader *r);
/* After known events got other ids or attrs. 0 or -ENOMEM. */
int fr_reader_reset_layouts(struct fr_reader *r);
/* Applies fr_reader_replace_attrs() to one event. */
void fr_reader_replace_attr(const struct fr_reader *r, struct fr_event_desc *e);
/* The index of the event that has ID, or -ENOENT. */
int64_t fr_reader_find_event(const struct fr_reader *r, uint64_t id);
/* Whether a whole record that these events can have made is at P, with LEFT bytes from there on. P need
   not be aligned. */
bool fr_reader_is_believable(const struct fr_reader *r, const uint8_t *p, size_t left);
/* And it has proof: the id of an event, or it is a round, or it begins a frame. */
bool fr_reader_is_proven(const struct fr_reader *r, const uint8_t *p, size_t left);
/* Whether the id of a believable record is that of no event. */
bool fr_reader_is_stray(const struct fr_reader *r, const uint8_t *p);

/* reader_zstd.c. Begins with the payload of a COMPRESSED record. Notes damage, does not fail. */
void fr_reader_start_compressed(struct fr_reader *r, const uint8_t *payload, size_t len, uint64_t at);
/* The next record of the zstd stream, perhaps not aligned. 1; 0: the next COMPRESSED record is needed; or
   -ENOMEM. */
int fr_reader_next_compressed(struct fr_reader *r, const uint8_t **ret);
/* Gives up the frame, counts the rest of its data as lost, and waits for the start of another frame. */
void fr_reader_drop_frame(struct fr_reader *r);
/* After the last record of the file: a record that has begun and not ended is damage. */
void fr_reader_end_compressed(struct fr_reader *r);
