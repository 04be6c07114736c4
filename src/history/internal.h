/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Declarations that the files of history/ share. Private to this folder. */

#include "base/lock.h"
#include "history/arena.h"
#include "history/codec.h"
#include "history/columns.h"
#include "history/history.h"
#include "history/layout.h"
#include "history/recover.h"
#include "history/regroup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_CHUNK_MAX FR_HISTORY_SECTION_MAX	 /* most bytes of samples in a chunk of any ring */
#define FR_CHUNK_SIDEBAND_MAX (FR_CHUNK_MAX / 4) /* most bytes of side-band in a chunk */

/* One section of the open chunk. DATA has room for CAP bytes, and its first FILL bytes are records. */
struct fr_open_section {
	uint8_t *data;
	size_t cap, fill;
	uint32_t n; /* number of records */
	uint64_t first_ns, last_ns;
	_Atomic uint64_t *image_fill; /* the copy of FILL in the image header */
	size_t committed;	      /* number of bytes that the newest commit has, and their crc32c */
	uint32_t committed_crc;
	uint8_t *zstd; /* buffer for the compressed section */
	size_t zstd_bytes;
	struct fr_regroup *runs; /* of which CPUs the records are; NULL: side-band */
};

struct fr_history {
	struct fr_history_config config;
	int fd;
	uint8_t *map;
	uint64_t size;
	struct fr_image_header *image;
	struct fr_codec *codec;
	struct fr_columns *columns;
	bool use_columns;     /* the choice of the newest try (seal.c) */
	unsigned until_try;   /* number of frames until the next try */
	double times_smaller; /* by how many times columns were smaller in the newest try */
	size_t section_max;   /* raw size of the largest section that the ring can have */

	struct fr_lock lock;
	/* True while a seal goes on: zstd reads the sections of the open chunk, and the sealing thread does
	   not hold the lock. In this time, no thread changes these sections or begins another seal. Snapshots
	   do not wait for the end of the seal. */
	bool sealing;
	struct fr_cond sealed;

	struct fr_open_section sideband, samples;
	struct fr_arena arena;
	uint64_t sideband_reserve; /* part of arena.reserve that is for frames without samples */
	struct fr_snapshot *snapshots;
	bool is_free; /* fr_history_free() was called, and the last snapshot frees the rest */

	uint64_t seq;		   /* sequence number of the open chunk */
	uint64_t low_watermark_ns; /* low watermark of the open chunk */
	uint64_t since_ns[2];	   /* SINCE_NS of the newest round [0], and of the round before it [1] */
	uint64_t frozen_ns;	   /* 0: not frozen */
	uint64_t last_ns;	   /* time of the newest sample that was ever appended */
	uint64_t chunks_dropped, samples_dropped, sideband_dropped;
	uint64_t compress_ns;
	uint64_t commits; /* generation of the newest commit */
};

#define FR_HISTORY_PAGE 4096u

/* history.c */

/* Allocates the pages of [OFFSET, OFFSET + LEN) of H. Returns 0 or a negative errno. */
int fr_history_populate(struct fr_history *h, uint64_t offset, uint64_t len);

/* Fills the constant part of an image header. SIZE is the size of the image in bytes, a multiple of the page
   size. */
void fr_image_lay_out(struct fr_image_header *ret, uint64_t size);

/* Makes a ring. If KEEP is true, the image in the memfd FD or, if FD is -1, in CONFIG->memory has the layout
   that CONFIG gives, and stays as it is: the caller sets up the log and the open chunk. On success, FD
   belongs to the ring. If KEEP is false, FD is -1, and the ring is new and empty. */
int fr_history_make(const struct fr_history_config *config, int fd, bool keep, struct fr_history **ret,
	struct fr_diag *d);

/* Frees H, which has no snapshot. */
void fr_history_destroy(struct fr_history *h);

/* Waits until no seal is going on, and locks H. */
void fr_history_lock(struct fr_history *h) FR_ACQUIRES(h->lock);

/* The records that are appended after this call are not older than SINCE_NS. For a ring that no round has
   reached yet. */
void fr_history_set_since(struct fr_history *h, uint64_t since_ns);
/* H, which is empty, will have all records from LOW_WATERMARK_NS on. */
void fr_history_begin_at(struct fr_history *h, uint64_t low_watermark_ns);

/* If the open chunk of H is empty, gives it the low watermark of the newest round. For a ring without
   side-band: until the first sample of a rare event comes, nothing old is in the ring. (The low watermark of
   the side-band says from when on it is complete, so it stays.) */
void fr_history_follow_rounds(struct fr_history *h);

/* Begins the next chunk: sets its sequence number and its low watermark. The lock is held, or no other thread
   has H yet. */
void fr_history_open_chunk(struct fr_history *h);

/* In seal.c. Seals the open chunk. Unlocks H during the compression. Returns 0; or 1 if samples were
   dropped. */
int fr_history_seal_locked(struct fr_history *h) FR_REQUIRES(h->lock);
/* Removes all records of S. The lock is held, or no other thread has S yet. */
void fr_open_section_clear(struct fr_open_section *s);

/* commit.c: what survives a crash of the machine (docs/design/25). If the ring is in a memfd, these functions
   do nothing. The lock is held, or no other thread has H yet, and no seal compresses the open chunk. */

/* Commits the open chunk: writes its new records back to the memory, and then the next commit. */
void fr_history_commit(struct fr_history *h);
/* Writes LEN bytes at P back to the memory. */
void fr_history_write_back(const struct fr_history *h, const void *p, size_t len);
/* Continues the generations of the commits that the image has. */
void fr_history_continue_commits(struct fr_history *h);

/* adopt.c; resize.c uses these functions, too. The caller ensures that no other thread has H. */

/* The chunk that a ring continues with. */
struct fr_open_chunk {
	struct fr_recovered_open records;
	uint64_t seq, low_watermark_ns, drained_ns;
};
/* Call this when the frame F of another ring has been put into the log of H. Raises last_ns of H to the
   newest time of F, and section_max of H to the largest raw section of F, if H has smaller values. */
void fr_history_count_frame(struct fr_history *h, const struct fr_frame *f);
/* Continues H with the records, the sequence number, the low watermark and drained_ns of O. */
void fr_history_take_open_chunk(struct fr_history *h, const struct fr_open_chunk *o);
/* Fills RET from the content of H. LEFT_OUT is the value of frames_left_out. */
void fr_history_describe(
	struct fr_history *h, uint64_t left_out, bool in_place, struct fr_history_adopted *ret);

/* snapshot.c */

/* The frames of a retained snapshot. */
struct fr_retained {
	size_t n, at; /* number of frames, and index of the next frame to read */
	struct fr_retained_view {
		struct fr_frame frame;
		uint64_t end; /* position after the frame */
	} views[];
};

struct fr_snapshot {
	struct fr_history *history;
	struct fr_snapshot *next;
	uint64_t start, end; /* positions: begin of the first frame, end of the last frame */
	uint64_t at;	     /* position of the next frame */
	uint64_t pinned;     /* frames from this position on are pinned; UINT64_MAX: no frame */
	uint64_t frames, samples;
	uint64_t low_watermark_ns;
	bool keep;
	struct fr_retained *retained; /* NULL: not retained */
};

/* Updates arena.pinned_from. Call this function when the pins of a snapshot have changed. */
void fr_snapshots_update_pins(struct fr_history *h) FR_REQUIRES(h->lock);
/* Returns the number of bytes of the log that are pinned or that a retained snapshot keeps. */
uint64_t fr_snapshots_pinned_bytes(struct fr_history *h) FR_REQUIRES(h->lock);
/* Returns the low watermark of the oldest frame; if there is no frame, the low watermark of the open
   chunk. */
uint64_t fr_history_oldest_low_watermark(struct fr_history *h) FR_REQUIRES(h->lock);

/* In retain.c. Frees RETAINED, which may be NULL, and lets H use the bytes of its frames again. Returns
   NULL. */
struct fr_retained *fr_retained_free(struct fr_retained *retained, struct fr_history *h) FR_REQUIRES(h->lock);
