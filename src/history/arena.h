/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The circular log of frames. The caller holds the history's lock for every call. Only fr_arena_next() needs
 * no lock within pinned frames, as those bytes do not change.
 *
 * Positions only grow. The offset of a position is its remainder by the log's size. [tail, head) is in use,
 * with its pads:
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

/* A part of the log that the head goes around: a retained snapshot has its frames there. */
struct fr_arena_hole {
	uint64_t offset, bytes;
	uint64_t position; /* in the last lap that met it */
};
#define FR_ARENA_HOLES 2u /* the log's end may split a hole in two */

struct fr_arena {
	uint8_t *log;
	uint64_t bytes;
	uint64_t reserve; /* bytes that stay free as long as pins allow it */
	uint64_t tail, head;
	uint64_t pinned_from; /* frames from this position on stay; UINT64_MAX: none */
	struct fr_arena_hole holes[FR_ARENA_HOLES];
	unsigned n_holes;
	void (*evicted)(void *ctx, const struct fr_frame *frame);
	void *ctx;
	/* What is in the log now, and what left it. */
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

static inline uint32_t fr_frame_need(const struct fr_frame *f)
{
	return fr_arena_need((uint64_t)f->sideband_len + f->samples_len);
}

/* Evict the oldest frames until NEED bytes fit beside the reserve. If a pin stops that, use the reserve, but
   for its last LEAVE bytes. False: there is no room. */
bool fr_arena_make_room(struct fr_arena *a, uint32_t need, uint64_t leave);

/* Copy FRAME to the head. fr_arena_make_room() has just returned true for it. */
void fr_arena_put(struct fr_arena *a, const struct fr_frame *frame);

/* Adopt the frame at OFFSET as the newest. The bytes between the head and it become pads. All adopted frames,
   with what lies between them, fit into the log. */
void fr_arena_adopt(struct fr_arena *a, uint64_t offset);

/* The first frame from *POSITION on and before END; *POSITION moves behind it. False: there is none. */
bool fr_arena_next(const struct fr_arena *a, uint64_t *position, uint64_t end, struct fr_frame *ret);

/* Evict the oldest frames up to POSITION, where a frame ends. False: a pin stopped that. */
bool fr_arena_evict_to(struct fr_arena *a, uint64_t position);

/* Another log has the N oldest frames, which end at POSITION. Forget them, even if they are pinned, without a
   call of evicted(). */
void fr_arena_forget(struct fr_arena *a, const struct fr_frame *frames, size_t n, uint64_t position);

/* Keep the bytes of the frames in [FROM, TO), also after their eviction: the head goes around them. Only the
   header of the first frame of each hole is overwritten. One range at a time. */
void fr_arena_protect(struct fr_arena *a, uint64_t from, uint64_t to);
void fr_arena_unprotect(struct fr_arena *a);

/* Recovery does not find an entry without its magic. */
static inline void fr_entry_wipe(struct fr_entry *e)
{
	atomic_store_explicit(&e->magic, 0, memory_order_release);
}

/* Describe the frame at HEADER. */
void fr_frame_view(const struct fr_frame_header *header, struct fr_frame *ret);

/* The smallest time in the oldest frame that has samples, or 0. */
uint64_t fr_arena_oldest_sample(struct fr_arena *a);
