/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Declarations that the files of history/ share. Private to this folder. */

#include "base/lock.h"
#include "history/arena.h"
#include "history/codec.h"
#include "history/history.h"
#include "history/layout.h"
#include "history/recover.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_CHUNK_MAX FR_HISTORY_SECTION_MAX	 /* most bytes of samples in a chunk of any ring */
#define FR_CHUNK_SIDEBAND_MAX (FR_CHUNK_MAX / 4) /* most bytes of side-band in a chunk */

/* One section of the open chunk. DATA has room for CAP bytes, and its first FILL bytes are records. */
struct fr_open_section {
	uint8_t *data;
	size_t cap, fill;
	uint32_t n; /* number of records; FINISHED_ROUNDs do not count */
	uint64_t first_ns, last_ns;
	_Atomic uint64_t *image_fill; /* the copy of FILL in the image header */
	uint8_t *zstd;		      /* buffer for the compressed section */
	size_t zstd_bytes;
};

struct fr_history {
	struct fr_history_config config;
	int fd;
	uint8_t *map;
	uint64_t size;
	struct fr_image_header *image;
	struct fr_codec *codec;
	size_t section_max; /* raw size of the largest section that the ring may have */

	struct fr_lock lock;
	/* True: zstd reads the open sections, and the lock is free. Meanwhile no thread changes the sections
	   or begins another seal. Snapshots do not wait for the end of the seal. */
	bool sealing;
	struct fr_cond sealed;

	struct fr_open_section sideband, samples;
	struct fr_arena arena;
	uint64_t sideband_reserve; /* part of the arena's reserve that is for frames without samples */
	struct fr_snapshot *snapshots;

	uint64_t seq;		   /* sequence number of the open chunk */
	uint64_t low_watermark_ns; /* low watermark of the open chunk */
	uint64_t since_ns[2];	   /* SINCE_NS of this round and of the previous round */
	uint64_t frozen_ns;	   /* 0: not frozen */
	uint64_t round_seq;	   /* sequence number of the chunk that was open at the begin of the round */
	uint64_t flush_seq;	   /* sequence number of the chunk that has the newest FINISHED_ROUND */
	uint64_t last_ns;	   /* time of the newest sample that was ever appended */
	uint64_t chunks_dropped, samples_dropped, sideband_dropped;
	uint64_t compress_ns;
};

#define FR_HISTORY_PAGE 4096u

/* history.c */

/* Allocate the pages of [OFFSET, OFFSET + LEN) of H. Returns 0 or a negative errno. */
int fr_history_populate(struct fr_history *h, uint64_t offset, uint64_t len);

/* Fill the constant part of an image header. SIZE is the size of the image in bytes, a multiple of the page
   size. */
void fr_image_lay_out(struct fr_image_header *ret, uint64_t size);

/* Make a ring on the memfd FD, whose image has the layout that CONFIG gives. The caller sets up the log and
   the open chunk. On success FD belongs to the ring. FD -1: make a new memfd, as fr_history_new() does. */
int fr_history_make(
	const struct fr_history_config *config, int fd, struct fr_history **ret, struct fr_diag *d);

/* Wait until no seal is going on, and lock H. */
void fr_history_lock(struct fr_history *h) FR_ACQUIRES(h->lock);

/* Begin the next chunk: set its sequence number and its low watermark. The lock is held, or no other thread
   has H yet. */
void fr_history_open_chunk(struct fr_history *h);

/* seal.c: seal the open chunk. Unlocks H during the compression. Returns 0; or 1 if samples were dropped. */
int fr_history_seal_locked(struct fr_history *h) FR_REQUIRES(h->lock);
/* Remove all records of S. The lock is held, or no other thread has S yet. */
void fr_open_section_clear(struct fr_open_section *s);

/* adopt.c; resize.c uses these functions, too. The caller ensures that no other thread has H. */

/* The chunk that a ring continues with. */
struct fr_open_chunk {
	struct fr_recovered_open records;
	uint64_t seq, low_watermark_ns, drained_ns;
};
/* F, a frame of another ring, is in the log of H now. Raise last_ns and section_max of H if F has larger
   values. */
void fr_history_count_frame(struct fr_history *h, const struct fr_frame *f);
/* Continue H with the records, the sequence number, the low watermark and drained_ns of O. */
void fr_history_take_open_chunk(struct fr_history *h, const struct fr_open_chunk *o);
/* Treat the open chunk as if it had a FINISHED_ROUND: the next FINISHED_ROUND is written in a round that
   begins after this chunk was sealed. So the promises of earlier FINISHED_ROUNDs stay true
   (docs/design/20). */
void fr_history_restart_rounds(struct fr_history *h);
/* Fill RET from the content of H. LEFT_OUT is the value of frames_left_out. */
void fr_history_describe(
	struct fr_history *h, uint64_t left_out, bool in_place, struct fr_history_adopted *ret);

/* snapshot.c */

/* The frames of a retained snapshot. */
struct fr_retained {
	size_t n, at;
	struct fr_retained_view {
		struct fr_frame frame;
		uint64_t end; /* position behind the frame */
	} views[];
};

struct fr_snapshot {
	struct fr_history *history;
	struct fr_snapshot *next;
	uint64_t start, end; /* positions */
	uint64_t at;	     /* position of the next frame */
	uint64_t pinned;     /* frames from this position on are pinned; UINT64_MAX: none is */
	uint64_t frames, samples;
	uint64_t low_watermark_ns;
	bool keep;
	struct fr_retained *retained; /* NULL: not retained */
};

/* Update arena.pinned_from. Call it when the pins of a snapshot have changed. */
void fr_snapshots_update_pins(struct fr_history *h) FR_REQUIRES(h->lock);
/* Returns the number of bytes of the log that are pinned or that a retained snapshot keeps. */
uint64_t fr_snapshots_pinned_bytes(struct fr_history *h) FR_REQUIRES(h->lock);
/* Returns the low watermark of the oldest frame; if there is no frame, the low watermark of the open
   chunk. */
uint64_t fr_history_oldest_low_watermark(struct fr_history *h) FR_REQUIRES(h->lock);

/* retain.c: free RETAINED, which may be NULL, and let H use its bytes again. Returns NULL. */
struct fr_retained *fr_retained_free(struct fr_retained *retained, struct fr_history *h) FR_REQUIRES(h->lock);
