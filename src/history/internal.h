/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What history.c, seal.c, snapshot.c and adopt.c share. Private to history/. */

#include "history/arena.h"
#include "history/codec.h"
#include "history/history.h"
#include "history/layout.h"
#include "history/recover.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_CHUNK_MAX FR_HISTORY_SECTION_MAX	 /* samples of a chunk, whatever the ring's size */
#define FR_CHUNK_SIDEBAND_MAX (FR_CHUNK_MAX / 4) /* and its side-band */

/* One section of the open chunk. */
struct fr_open_section {
	uint8_t *data;
	size_t cap, fill;
	uint32_t n; /* records, FINISHED_ROUND not counted */
	uint64_t first_ns, last_ns;
	_Atomic uint64_t *mark; /* what the image says of fill */
};

struct fr_history {
	struct fr_history_config config;
	int fd;
	uint8_t *map;
	uint64_t size;
	struct fr_image_header *image;
	struct fr_codec *codec;
	uint8_t *scratch_sideband, *scratch_samples;
	size_t scratch_sideband_bytes, scratch_samples_bytes;
	size_t section_max; /* raw size of the largest section that the ring may hold */

	pthread_mutex_t lock;
	/* The open sections are being compressed, without the lock: they are not to be touched, and no second
	   seal may start. Snapshots do not care. */
	bool sealing;
	pthread_cond_t sealed;

	struct fr_open_section sideband, samples;
	struct fr_arena arena;
	uint64_t hold_back; /* of the reserve, for frames of side-band alone */
	struct fr_snapshot *snapshots;

	uint64_t seq;		   /* of the open chunk */
	uint64_t low_watermark_ns; /* of the open chunk */
	uint64_t since_ns[2];	   /* of this round, and of the one before */
	uint64_t hold_ns;	   /* 0: nobody holds */
	uint64_t round_seq;	   /* the chunk that was open when the round began */
	uint64_t flush_seq;	   /* the chunk that has the newest FINISHED_ROUND */
	uint64_t last_ns;	   /* newest sample ever */
	uint64_t chunks_dropped, samples_dropped, sideband_dropped;
	uint64_t compress_ns;
};

#define FR_HISTORY_PAGE 4096u

/* [OFFSET, OFFSET + LEN) of H's memory is taken from the machine. 0 or a negative errno. */
int fr_history_populate(struct fr_history *h, uint64_t offset, uint64_t len);

/* The areas of an image of SIZE, whole pages: the constant part of its header. */
void fr_image_lay_out(struct fr_image_header *ret, uint64_t size);

/* A history on FD, whose layout is CONFIG's, with the log and the open chunk still to be taken from there:
   nothing is written, and FD is taken on success. FD -1: an empty one, as fr_history_new() makes it. */
int fr_history_make(
	const struct fr_history_config *config, int fd, struct fr_history **ret, struct fr_diag *d);

/* Take the lock, with no seal going on. */
void fr_history_lock(struct fr_history *h);
void fr_history_unlock(struct fr_history *h);

/* Lock held; lets go of it meanwhile. Close the open chunk where it holds anything. 0; 1: samples were
   dropped. Side-band may still be in its section, where the log had no room for it. */
int fr_history_seal_locked(struct fr_history *h);

/* Lock held. The open chunk is a new one: what it promises. */
void fr_history_open_chunk(struct fr_history *h);

/* The chunk that a ring goes on with, and what is known of it. */
struct fr_open_chunk {
	struct fr_recovered_open records;
	uint64_t seq, low_watermark_ns, drained_ns;
};

/* adopt.c, for resize.c; nobody else has H. The frame is H's now; with all that were before it, H goes on
   with the chunk. */
void fr_history_note_frame(struct fr_history *h, const struct fr_frame *f);
void fr_history_take_open_chunk(struct fr_history *h, const struct fr_open_chunk *o);
void fr_history_begin_rounds_anew(struct fr_history *h);
void fr_history_tell(struct fr_history *h, uint64_t left_out, bool in_place, struct fr_history_adopted *ret);

struct fr_retained;

struct fr_snapshot {
	struct fr_history *history;
	struct fr_snapshot *next;
	uint64_t start, end; /* positions */
	uint64_t at;	     /* of the next frame */
	uint64_t pinned;     /* frames from here to the end; UINT64_MAX: none */
	uint64_t frames, samples;
	uint64_t low_watermark_ns;
	bool keep;
	struct fr_retained *retained; /* the frames, where the snapshot has been retained */
};

/* Lock held. What the snapshots pin has changed. */
void fr_snapshots_update_pins(struct fr_history *h);

/* retain.c. One thread's, but for free(): lock held. */
bool fr_retained_next(struct fr_retained *retained, struct fr_frame *ret);
void fr_retained_rewind(struct fr_retained *retained);
struct fr_retained *fr_retained_free(struct fr_retained *retained, struct fr_arena *a);

/* Lock held, or nobody else there yet. The low watermark of the oldest frame, or else of the open chunk. */
uint64_t fr_history_oldest_low_watermark(const struct fr_history *h);

/* Lock held. Bytes of the log that snapshots hold. */
uint64_t fr_snapshots_pinned_bytes(const struct fr_history *h);

/* Lock held, or nobody else there yet. */
void fr_open_section_clear(struct fr_open_section *s);
