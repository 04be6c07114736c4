/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The circular log of the ring. It holds frames (frame.h). The caller holds the lock of struct fr_history for
 * every call. One exception: fr_arena_next() needs no lock while it reads pinned frames (frames that must not
 * be evicted), because their bytes do not change.
 *
 * A position is a number of bytes that only grows, also when the head begins again at the start of the log.
 * The offset of a position in the log is the position modulo the size of the log. A pad is an entry without
 * content: it covers bytes that the head has skipped. Frames and pads are at the positions [tail, head):
 *
 *     offset 0                                              bytes
 *     │ newest ──▶ head      free      tail ──▶ oldest, …  │pad│
 */

#include "history/frame.h"
#include "history/layout.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A hole is a part of the log that the head skips, because it has the frames of a retained snapshot
   (fr_snapshot_retain()). */
struct fr_arena_hole {
	uint64_t offset, bytes;
	uint64_t position; /* position of the hole's begin when the head was there the last time */
};
#define FR_ARENA_HOLES 2u /* the log's end can split the frames of a retained snapshot */

struct fr_arena {
	uint8_t *log;
	uint64_t bytes;
	uint64_t reserve; /* bytes that stay free, unless pinned frames stop the eviction */
	uint64_t tail, head;
	uint64_t pinned_from; /* frames from this position on are pinned; UINT64_MAX: no frame */
	struct fr_arena_hole holes[FR_ARENA_HOLES];
	unsigned n_holes;
	void (*evicted)(void *ctx, const struct fr_frame *frame);
	void *ctx;
	/* The number of frames in the log, and the sums of their records and of their bytes before
	   compression. */
	uint64_t frames, samples, sideband, raw_bytes;
	/* The numbers of all frames and samples that were evicted. */
	uint64_t frames_evicted, samples_evicted;
	uint64_t sampled; /* no frame before this position has samples */
};

static inline uint64_t fr_arena_used(const struct fr_arena *a)
{
	return a->head - a->tail;
}

/* Returns the size in the log of a frame whose two sections have PAYLOAD bytes in total. */
static inline uint32_t fr_arena_need(uint64_t payload)
{
	return (uint32_t)((sizeof(struct fr_frame_header) + payload + FR_FRAME_ALIGN - 1) &
			  ~(uint64_t)(FR_FRAME_ALIGN - 1));
}

static inline uint32_t fr_frame_need(const struct fr_frame *f)
{
	return fr_arena_need((uint64_t)f->sideband_len + f->samples_len);
}

/* Evicts the oldest frames until there is room for NEED bytes and for the reserve. If a pinned frame stops
   the eviction, the NEED bytes may use the reserve, except for LEAVE bytes of the reserve. Returns whether
   there is room. */
bool fr_arena_make_room(struct fr_arena *a, uint32_t need, uint64_t leave);

/* Copies FRAME to the head, and returns its fr_frame_need() bytes in the log. Call this function directly
   after fr_arena_make_room() has returned true for the size of FRAME. */
const void *fr_arena_put(struct fr_arena *a, const struct fr_frame *frame);

/* Adopts the frame at OFFSET, which another process has written, as the newest frame. The bytes between the
   head and this frame become pads. The caller ensures that all adopted frames and pads fit into the log. */
void fr_arena_adopt(struct fr_arena *a, uint64_t offset);

/* Sets RET to the first frame at *POSITION or later that begins before END, and sets *POSITION to the end of
   this frame. Returns whether there is such a frame. */
bool fr_arena_next(const struct fr_arena *a, uint64_t *position, uint64_t end, struct fr_frame *ret);

/* Evicts the oldest frames until the tail is at POSITION or later. Returns false if a pinned frame stopped
   the eviction. */
bool fr_arena_evict_to(struct fr_arena *a, uint64_t position);

/* Removes the N oldest frames, which are in another log now. The last of them ends at POSITION. Pinned frames
   are removed, too, and evicted() is not called. */
void fr_arena_forget(struct fr_arena *a, const struct fr_frame *frames, size_t n, uint64_t position);

/* Keeps the bytes of the frames at the positions [FROM, TO), also after the eviction of these frames: the
   bytes become one or two holes. The ring then writes only a pad header to each hole, over the header of the
   first frame in the hole. There can be one such range at a time. */
void fr_arena_protect(struct fr_arena *a, uint64_t from, uint64_t to);
void fr_arena_unprotect(struct fr_arena *a);

/* Clears the magic of an entry, so that recovery (recover.h) does not find the entry. */
static inline void fr_entry_wipe(struct fr_entry *e)
{
	atomic_store_explicit(&e->magic, 0, memory_order_release);
}

/* Fills RET from the frame at HEADER. RET points to the sections of the frame, which are not copied. */
void fr_frame_view(const struct fr_frame_header *header, struct fr_frame *ret);

/* Returns the time of the oldest sample in the oldest frame that has samples; 0 if no frame has samples. */
uint64_t fr_arena_oldest_sample(struct fr_arena *a);
