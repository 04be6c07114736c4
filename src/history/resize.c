// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Changes the size of a ring while records are appended: the frames move from the old ring to a new ring, and
 * the pages of moved frames are freed step by step. So the memory of both rings is never allocated in full at
 * the same time (docs/design/23).
 *
 *     from   │░░░░░ freed pages ░░░░░░│ tail ──▶ … ──▶ head ──▶ open chunk │   records are appended here
 *                                        │ moved, oldest first
 *     to     │ tail ──▶ … ──▶ head │◄────┘                                     grows page by page
 */
#include "history/internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLICE (4ULL << 20)
#define FINISH_MAX (1ULL << 20)	   /* most bytes of frames that finish() has to move */
#define LEAD (16ULL << 20)	   /* bytes after the new ring's head that are populated before finish() */
#define POPULATE_MAX (64ULL << 20) /* most bytes that one fr_resize_populate() allocates */
#define VIEWS 64u

struct fr_resize {
	struct fr_history *from, *to;
	uint64_t evicted_before; /* number of frames that the old ring had evicted before begin() */
	uint64_t populated;	 /* number of bytes of the new ring that populate() has allocated */
	bool moving, finished, populate;
	bool has_all; /* the new ring has all frames and the open chunk */
};

/* Notes in the image of FROM that the frames with a sequence number below SEQ have been evicted or moved.
   Their bytes can still be in pages of FROM, but the adoption of FROM then ignores these frames. */
static void set_moved(struct fr_history *from, uint64_t seq)
{
	atomic_store_explicit(&from->image->moved_seq, seq, memory_order_release);
}

/* Pins all frames of the old ring, so that it evicts no frame. The caller holds the lock, or no other thread
   uses the old ring. */
static void begin_to_move(struct fr_resize *z)
{
	z->from->arena.pinned_from = 0;
	set_moved(z->from, fr_history_oldest_seq(z->from));
	z->moving = true;
}

static int make_resize(struct fr_history *from, struct fr_history *to, struct fr_resize **ret)
{
	struct fr_resize *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	*z = (struct fr_resize){.from = from, .to = to, .populate = from->config.populate};
	fr_lock(&from->lock);
	z->evicted_before = from->arena.frames_evicted;
	fr_unlock(&from->lock);
	*ret = z;
	return 0;
}

int fr_resize_begin(struct fr_history *h, uint64_t size_bytes, struct fr_resize **ret, struct fr_diag *d)
{
	struct fr_history_config config = h->config;
	struct fr_history *to;
	bool is_read;
	int r;

	fr_lock(&h->lock);
	is_read = h->snapshots;
	fr_unlock(&h->lock);
	if (is_read)
		return fr_fail(d, -EBUSY, "try again after the dump has been written",
			"the ring cannot change its size while a dump is written from it");
	if (h->config.memory.at)
		return fr_fail(d, -ENOTSUP,
			"RingSize= has no effect with RingMemory=", "the ring has the size of its memory");
	config.size_bytes = size_bytes;
	config.populate = false;
	r = fr_history_make(&config, -1, false, &to, d);
	if (r < 0)
		return r;
	r = fr_history_populate(to, 0, to->image->log_offset);
	if (r >= 0)
		r = make_resize(h, to, ret);
	if (r < 0) {
		fr_history_free(to);
		return fr_fail_errno(d, r, NULL, "cannot make a ring of another size");
	}
	return 0;
}

/* Removes the frames with a sequence number below SEQ from the old ring. A killed instance can have left such
   frames in both rings. */
static void forget_moved(struct fr_history *from, uint64_t seq)
{
	struct fr_arena *a = &from->arena;
	uint64_t position = a->tail;
	struct fr_frame f;

	while (fr_arena_next(a, &position, a->head, &f) && f.seq < seq)
		fr_arena_forget(a, &f, 1, position);
}

int fr_resize_resume(struct fr_history *from, struct fr_history *to, struct fr_resize **ret)
{
	const bool from_is_open = from->samples.fill || from->sideband.fill;
	bool has_all;
	int r;

	forget_moved(from, to->seq);
	has_all = from->arena.frames == 0 && (!from_is_open || to->seq > from->seq);
	if (!has_all && to->arena.frames && fr_history_oldest_seq(from) != to->seq)
		return -EBADMSG;
	r = make_resize(from, to, ret);
	if (r < 0)
		return r;
	(*ret)->populate = true;
	(*ret)->has_all = has_all;
	if (has_all)
		return 0;
	/* TO can have a part of the open chunk, but FROM has the whole open chunk. */
	fr_open_section_clear(&to->samples);
	fr_open_section_clear(&to->sideband);
	begin_to_move(*ret);
	return 0;
}

int fr_resize_fd(const struct fr_resize *z)
{
	return z->to->fd;
}

/* Frees the pages that are within the positions [FROM, TO). */
static void punch(struct fr_history *h, uint64_t from, uint64_t to)
{
	const struct fr_arena *a = &h->arena;

	while (from < to) {
		uint64_t offset = from % a->bytes, bytes = FR_MIN(to - from, a->bytes - offset);
		uint64_t begin = h->image->log_offset + offset;
		uint64_t first = FR_ALIGN_UP(begin, FR_HISTORY_PAGE);
		uint64_t end = (begin + bytes) / FR_HISTORY_PAGE * FR_HISTORY_PAGE;

		if (first < end)
			(void)fallocate(h->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first,
				(off_t)(end - first));
		from += bytes;
	}
}

/* Evicts some of the frames that do not fit into the new ring. The lock is held until their pages are freed,
   because the next append may use the room. */
static void evict_some(struct fr_resize *z)
{
	struct fr_history *from = z->from;
	struct fr_arena *a = &from->arena;
	const uint64_t most = z->to->arena.bytes - z->to->arena.reserve;
	uint64_t begin;

	fr_lock(&from->lock);
	begin = a->tail;
	while (fr_arena_used(a) > most && a->tail - begin < SLICE && fr_arena_evict_to(a, a->tail + 1))
		;
	punch(from, begin, a->tail);
	if (fr_arena_used(a) <= most || a->frames == 0)
		begin_to_move(z);
	fr_unlock(&from->lock);
}

/* Appends F to TO. If there is no room for F, it counts as evicted. */
static void put_frame(struct fr_history *to, const struct fr_frame *f)
{
	struct fr_arena *a = &to->arena;

	if (fr_arena_make_room(a, fr_frame_need(f), to->sideband_reserve)) {
		fr_arena_put(a, f);
		fr_history_count_frame(to, f);
		return;
	}
	if (a->evicted)
		a->evicted(a->ctx, f);
	a->frames_evicted++;
	a->samples_evicted += f->n_samples;
}

/* Frames that move together. They are valid until fr_arena_forget(). */
struct slice {
	struct fr_frame frames[VIEWS];
	unsigned n;
	uint64_t begin, end; /* positions */
	uint64_t left;	     /* bytes of these frames and of all newer frames */
};

static void view_slice(struct fr_history *from, struct slice *ret)
{
	const struct fr_arena *a = &from->arena;

	fr_lock(&from->lock);
	ret->n = 0;
	ret->begin = ret->end = a->tail;
	ret->left = fr_arena_used(a);
	while (ret->n < VIEWS && ret->end - ret->begin < SLICE &&
		fr_arena_next(a, &ret->end, a->head, &ret->frames[ret->n]))
		ret->n++;
	fr_unlock(&from->lock);
}

static void forget_slice(struct fr_history *from, const struct slice *s)
{
	fr_lock(&from->lock);
	fr_arena_forget(&from->arena, s->frames, s->n, s->end);
	fr_unlock(&from->lock);
}

static void populate_lead(struct fr_resize *z)
{
	const struct fr_arena *a = &z->to->arena;
	uint64_t offset = a->head % a->bytes / FR_HISTORY_PAGE * FR_HISTORY_PAGE;

	(void)fr_history_populate(z->to, z->to->image->log_offset + offset, FR_MIN(LEAD, a->bytes - offset));
}

static void put_slice(struct fr_history *to, const struct slice *s)
{
	for (unsigned i = 0; i < s->n; i++)
		put_frame(to, &s->frames[i]);
}

int fr_resize_step(struct fr_resize *z)
{
	struct slice s;

	if (z->has_all)
		return 0;
	if (!z->moving) {
		evict_some(z);
		return 1;
	}
	view_slice(z->from, &s);
	if (s.n == 0 || s.left <= FINISH_MAX) {
		populate_lead(z);
		return 0;
	}
	put_slice(z->to, &s);
	set_moved(z->from, s.frames[s.n - 1].seq + 1);
	punch(z->from, s.begin, s.end);
	forget_slice(z->from, &s);
	return 1;
}

static void move_last_frames(struct fr_resize *z)
{
	struct slice s;

	for (view_slice(z->from, &s); s.n > 0; view_slice(z->from, &s)) {
		put_slice(z->to, &s);
		forget_slice(z->from, &s);
	}
}

static void continue_counters(struct fr_history *to, const struct fr_history *from)
{
	to->arena.frames_evicted += from->arena.frames_evicted;
	to->arena.samples_evicted += from->arena.samples_evicted;
	to->since_ns[0] = from->since_ns[0];
	to->since_ns[1] = from->since_ns[1];
	to->frozen_ns = from->frozen_ns;
	to->last_ns = FR_MAX(to->last_ns, from->last_ns);
	to->chunks_dropped = from->chunks_dropped;
	to->samples_dropped = from->samples_dropped;
	to->sideband_dropped = from->sideband_dropped;
	to->compress_ns += from->compress_ns;
}

struct fr_history *fr_resize_finish(struct fr_resize *z, struct fr_history_adopted *ret_adopted)
{
	struct fr_history *from = z->from, *to = z->to;
	const struct fr_open_chunk open = {
		.records = {from->sideband.data, from->samples.data, from->sideband.fill, from->samples.fill},
		.seq = from->seq,
		.low_watermark_ns = from->low_watermark_ns,
		.drained_ns = atomic_load_explicit(&from->image->drained_ns, memory_order_relaxed),
	};

	if (!z->has_all) {
		move_last_frames(z);
		fr_history_take_open_chunk(to, &open);
		/* This must come after fr_history_take_open_chunk(), which can make several chunks of the
		   records of one chunk. A new chunk takes its low watermark from since_ns. But since_ns of
		   the old ring is newer than the low watermark of its open chunk. */
		continue_counters(to, from);
		/* Before the next two calls, both rings have the open chunk. If the process is killed now,
		   fr_resize_resume() uses the open chunk of FROM, unless TO has sealed a part of the
		   chunk. */
		fr_open_section_clear(&from->sideband);
		fr_open_section_clear(&from->samples);
	}
	to->config.populate = z->populate;
	z->finished = true;
	fr_history_describe(to, to->arena.frames_evicted - z->evicted_before, false, ret_adopted);
	return to;
}

int fr_resize_populate(struct fr_resize *z)
{
	struct fr_history *to = z->to;
	uint64_t len = FR_MIN(POPULATE_MAX, to->size - z->populated);
	int r;

	z->from = fr_history_free(z->from);
	if (!to->config.populate || len == 0)
		return 0;
	r = fr_history_populate(to, z->populated, len);
	z->populated += len;
	return r < 0 ? r : 1;
}

struct fr_resize *fr_resize_free(struct fr_resize *z)
{
	if (!z)
		return NULL;
	fr_history_free(z->from);
	if (!z->finished)
		fr_history_free(z->to);
	free(z);
	return NULL;
}

int fr_resize_finish_interrupted(
	struct fr_history **h, struct fr_history *next, struct fr_history_adopted *ret)
{
	struct fr_resize *z = NULL;
	const int r = fr_resize_resume(*h, next, &z);

	if (r < 0) {
		fr_history_free(next);
		return r;
	}
	while (fr_resize_step(z) > 0)
		;
	*h = fr_resize_finish(z, ret);
	while (fr_resize_populate(z) > 0)
		;
	fr_resize_free(z);
	return 0;
}
