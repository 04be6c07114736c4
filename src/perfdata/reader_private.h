/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the files of the reader share; nobody else includes this. */

#include "perfdata/reader.h"

#include <zstd.h>

/* Bounds, whatever a file says. */
#define FR_READER_WINDOW (512u << 10)	    /* of the file, in memory */
#define FR_READER_OPENED (256u << 10)	    /* decompressed, not yet handed out */
#define FR_READER_SECTION_MAX (64u << 20)   /* one feature section */
#define FR_READER_SECTIONS_MAX (256u << 20) /* all of them */
#define FR_READER_EVENTS_MAX 16384u
#define FR_READER_IDS_MAX (4u << 20)
#define FR_READER_RESYNC_RECORDS 4 /* whole records in a row that make a new start believable */

/* Whether a COMPRESSED record's payload begins a zstd frame, or the skippable one that our writer puts before
 * it. */
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
	struct fr_reader_source source; /* or NULL: pread() */
	bool pipe;
	uint64_t file_size;
	uint64_t data_start, data_end, at; /* file offsets; AT: the next outer record */

	/* A run of the file: window[0 … window_len) stands at window_at. */
	uint8_t *window;
	uint64_t window_at;
	size_t window_len;

	/* The zstd stream: what is left of the COMPRESSED record at PACKED_AT, and what came out of it. */
	ZSTD_DStream *zstd;
	ZSTD_inBuffer packed;
	uint64_t packed_at;
	bool in_frame, continues; /* a frame has begun and not ended; it had when this record began */
	uint8_t *opened;
	size_t opened_start, opened_len;
	bool wait_for_frame; /* after damage: until a record that begins with the magic of a frame */

	struct fr_session session;
	const struct fr_session *better; /* of fr_reader_replace_attrs(), or NULL */
	struct fr_layout *layouts;	 /* one per event */
	size_t n_layouts;
	bool one_layout;   /* all the same */
	bool one_id_place; /* the id stands at the same place in all */
	struct fr_id_table ids;
	size_t n_ids, section_bytes;

	struct fr_damage damage;
	uint64_t aux_bytes;
	uint64_t scratch[(FR_RECORD_MAX + 8) / 8]; /* an aligned copy of a record that is not */
};

/* reader_window.c: LEN bytes of the file at AT, or fewer where the file ends; RET_LEN says how many. The
   pointer is valid until the next call. 0 or a negative errno. LEN ≤ FR_READER_WINDOW. */
int fr_reader_window(struct fr_reader *r, uint64_t at, size_t len, const uint8_t **ret, size_t *ret_len);

/* reader_head.c: attrs, ids and feature sections of the file format. 0, -EBADMSG with D, negative errno. */
int fr_reader_head(struct fr_reader *r, struct fr_diag *d);
/* Names (and where the attr section gave none, ids) from EVENT_DESC. 0, -EBADMSG, -ENOMEM. */
int fr_reader_apply_event_desc(struct fr_reader *r);

/* reader_pipe.c: a head record of the pipe format, LEN bytes at RECORD, standing at file offset AT.
   1: taken, RET_SIZE is what it takes of the file; 0: not a head record; -EBADMSG: damaged; negative errno.
   May move the window. */
int fr_reader_pipe_record(
	struct fr_reader *r, const struct perf_event_header *record, uint64_t at, uint64_t *ret_size);

/* reader_layout.c: after events came in. 0 or -ENOMEM. */
int fr_reader_layouts(struct fr_reader *r);
/* After ids came to events that were known before. */
int fr_reader_layouts_anew(struct fr_reader *r);
/* What fr_reader_replace_attrs() said of the event. */
void fr_reader_correct_event(const struct fr_reader *r, struct fr_event_desc *e);
/* Index of the event that has ID, or -ENOENT. */
int64_t fr_reader_event_of(const struct fr_reader *r, uint64_t id);
/* Whether LEFT bytes at P begin with a whole record that these events can have made. Needs no alignment. */
bool fr_reader_believable(const struct fr_reader *r, const uint8_t *p, size_t left);
/* And it tells of itself that it is one: by the id of an event, as a round, as the begin of a frame. */
bool fr_reader_is_telling(const struct fr_reader *r, const uint8_t *p, size_t left);
/* A believable record of which only the id is not: nobody can say what it belongs to. */
bool fr_reader_is_stray(const struct fr_reader *r, const uint8_t *p);

/* reader_zstd.c. Begin with the payload of a COMPRESSED record; never fails: what cannot be opened is damage.
 */
void fr_reader_packed(struct fr_reader *r, const uint8_t *payload, size_t len, uint64_t at);
/* The next record out of the stream, not always aligned. 1, 0: give me the next COMPRESSED record, -ENOMEM.
 */
int fr_reader_unpack(struct fr_reader *r, const uint8_t **ret);
/* Give up the frame, and wait for the begin of another. What had come out of it is counted as lost. */
void fr_reader_drop_frame(struct fr_reader *r);
/* The data ended: a record that began and did not end is damage. */
void fr_reader_packed_end(struct fr_reader *r);

/* Note damage at file offset AT that cost LOST bytes; the first one's words stay. */
void fr_reader_damaged(struct fr_reader *r, uint64_t at, uint64_t lost, const char *what);
