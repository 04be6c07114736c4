/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The circular log of frames. Nothing here locks: the history's lock is held around every call, but for
 * fr_arena_step() within what is pinned: those bytes do not change.
 *
 * Positions only grow; a position's offset in the log is its remainder by the log's size. [tail, head) is in
 * use, pads included:
 *
 *     offset 0                                              bytes
 *     │ newest ──▶ head      free      tail ──▶ oldest, …  │pad│
 */

#include "history/history.h"
#include "history/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of the log that the head goes around: frames of a snapshot that is retained lie there. */
struct fr_arena_hole {
	uint64_t offset, bytes;
	uint64_t position; /* where it was last met */
};
#define FR_ARENA_HOLES 2u /* one that is cut by the log's end is two */

struct fr_arena {
	uint8_t *log;
	uint64_t bytes;
	uint64_t reserve; /* kept free as long as pins allow it */
	uint64_t tail, head;
	uint64_t pinned_from; /* frames at or past this position stay; UINT64_MAX: none has to */
	struct fr_arena_hole holes[FR_ARENA_HOLES];
	unsigned n_holes;
	void (*evicted)(void *ctx, const struct fr_frame *frame);
	void *ctx;
	/* What lies in the log now, and what left it. */
	uint64_t frames, samples, sideband, raw_bytes;
	uint64_t frames_evicted, samples_evicted;
	uint64_t sampled; /* no frame before this position has samples */
};

static inline uint64_t fr_arena_used(const struct fr_arena *a)
{
	return a->head - a->tail;
}

/* Bytes of a frame with a payload of PAYLOAD. */
static inline uint32_t fr_arena_need(uint64_t payload)
{
	return (uint32_t)((sizeof(struct fr_frame_header) + payload + FR_FRAME_ALIGN - 1) &
			  ~(uint64_t)(FR_FRAME_ALIGN - 1));
}

/* Evict the oldest frames until NEED bytes fit beside the reserve; where a pin stops that, dip into the
   reserve down to its last HOLD_BACK bytes. False: no room. */
bool fr_arena_make_room(struct fr_arena *a, uint32_t need, uint64_t hold_back);

static inline uint32_t fr_frame_need(const struct fr_frame *f)
{
	return fr_arena_need((uint64_t)f->sideband_len + f->samples_len);
}

/* Put a copy of FRAME at the head. fr_arena_make_room() has just said true for it. */
void fr_arena_put(struct fr_arena *a, const struct fr_frame *frame);

/* The frame that lies at OFFSET already is the next one, behind the head; what is between the two holds no
   frame and becomes pads. The first one's begin is the tail. All of them together, with what is between, fit
   into the log. */
void fr_arena_take(struct fr_arena *a, uint64_t offset);

/* The first frame at or behind *POSITION and before END, and its view; *POSITION moves behind it. False:
   there is none, and *POSITION is END. */
bool fr_arena_step(const struct fr_arena *a, uint64_t *position, uint64_t end, struct fr_frame *ret);

/* Evict the oldest frames up to POSITION, where a frame ends. False: a pin stopped that. */
bool fr_arena_evict_to(struct fr_arena *a, uint64_t position);

/* The N oldest frames, which end at POSITION, lie elsewhere now: nothing is told, whatever is pinned. Their
   bytes may be gone. */
void fr_arena_leave(struct fr_arena *a, const struct fr_frame *frames, size_t n, uint64_t position);

/* Keep the bytes of the frames in [FROM, TO) as they are, also when they are evicted and for as many laps as
   it takes: the head goes around them. The header of the first frame of each hole is used for that; all else
   of them can be read without the lock. One range at a time. */
void fr_arena_go_around(struct fr_arena *a, uint64_t from, uint64_t to);
void fr_arena_fill_holes(struct fr_arena *a);

/* What a reader sees of a frame. */
void fr_frame_view(const struct fr_frame_header *header, struct fr_frame *ret);

/* Smallest time in the oldest frame that has samples, or 0. */
uint64_t fr_arena_oldest_sample(struct fr_arena *a);
