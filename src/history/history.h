/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ring in user space: the newest records of the machine, compressed, in one memfd of a fixed size.
 *
 *     header │ open chunk: side-band buffer, sample buffer │ circular log of frames
 *
 * Whole records are appended to the open chunk, or, where a run is long enough for a chunk, are one from
 * where they lie. A chunk that is full is sealed: each of its two sections becomes one zstd frame, both with
 * a frame header (sequence, times, counts, crc32c) are put at the log's head, and the oldest frames are
 * evicted for the room. A snapshot pins the frames it may still read: they are not evicted, appends go on
 * into the room that is kept free as a reserve, and past it the newest chunk is dropped and counted.
 *
 * Threads: append, round and seal on the recorder thread; fr_history_append_sideband() from any; snapshots
 * from any. Nothing here blocks on anything but a mutex that is held for the time of a memcpy or of a seal.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_HISTORY_SIZE_MIN (1ULL << 20)
#define FR_HISTORY_SIZE_MAX (16ULL << 30)

/* fr_history_section_max() of any ring, whatever its size. */
#define FR_HISTORY_SECTION_MAX (1u << 20)

/* What append() takes at once of any ring: a record is never larger, so it always fits into an empty chunk.
 */
#define FR_HISTORY_RUN_MAX (64u << 10)

/* One frame as its reader sees it: two zstd frames of whole records, either may be empty (len 0). */
struct fr_frame {
	uint64_t seq;
	/* Nothing in this frame or in a later one is older, but for what came from an overwritable ring. 0:
	   not known, nothing was evicted before it. */
	uint64_t low_watermark_ns;
	uint64_t first_ns, last_ns; /* of its samples; 0, 0 where it has none */
	uint64_t sideband_first_ns, sideband_last_ns;
	uint32_t n_samples, n_sideband;	    /* records */
	uint32_t samples_raw, sideband_raw; /* bytes before compression */
	const void *samples, *sideband;	    /* zstd */
	uint32_t samples_len, sideband_len;
};

struct fr_history;

struct fr_history_config {
	uint64_t size_bytes; /* of the memfd, all told; 2 MiB more are zstd's at level 1 */
	bool populate;	     /* take all of it from the machine now, and not page by page from the appending
				thread: a machine in trouble has no page to give just when it matters */
	bool keep_size; /* of an image that is adopted, where its layout holds: `size_bytes` is for what is
			   not */
	int level; /* zstd's. 1 is the best point for records of the kernel: lower ones cost more for longer
		      frames */
	/* Called for each frame that is evicted, oldest first, on the thread that seals (an appending one),
	   with the lock held: copy and go, no call back into the history. */
	void (*evicted)(void *ctx, const struct fr_frame *frame);
	void *ctx;
};

/* -EINVAL with D for a size outside the limits, or a level zstd does not have; -ENOMEM: `populate`, and the
   machine has not so much. The size is rounded down to whole pages. */
int fr_history_new(const struct fr_history_config *config, struct fr_history **ret, struct fr_diag *d);
struct fr_history *fr_history_free(struct fr_history *h); /* no snapshot may be left */

/* What came over from a ring into the one that goes on with it. */
struct fr_history_adopted {
	uint64_t frames, samples, sideband; /* records; those of the open chunk are counted, too */
	uint64_t first_ns, last_ns;	    /* oldest and newest sample; 0: none */
	uint64_t low_watermark_ns; /* of the oldest frame: nothing that came over is older. 0: not known */
	uint64_t drained_ns; /* all that was in the kernel's rings by then came into the ring. 0: not known */
	bool in_place;	     /* the memory is the same; else it was copied, into a memfd that is new */
	uint64_t frames_left_out; /* whole, but: they do not fit, or damage left a gap behind them. Some may
				     have been evicted before. */
};

/*
 * Go on with the ring in FD: the image of an instance that is no more, killed at whatever instant; a memfd
 * with the size seals. Consumed on success. In place where size and layout are CONFIG's; else its newest
 * frames that fit are copied into a new one. Sequence numbers go on. What came over is the newest run of
 * frames without a gap, and the chunk that was open. config->evicted is not called for what is left out: the
 * state that the ring begins with is that of WHAT->low_watermark_ns.
 *
 * 0. -EBADMSG with D: no image of ours, another version, no size seals, or damaged so that nothing can be
 * taken: the caller then starts an empty one. Else as fr_history_new(). FD is the caller's where this fails;
 * an attempt that fails for memory changes nothing in the image that another attempt would need.
 */
int fr_history_adopt(const struct fr_history_config *config, int fd, struct fr_history **ret,
	struct fr_history_adopted *what, struct fr_diag *d);
uint64_t fr_history_size(const struct fr_history *h); /* of the memfd */
uint64_t fr_history_whole_pages(uint64_t size);	      /* what of a configured size it has */

/*
 * Another size for a ring that is recorded to. A new ring takes over the newest frames that fit and the open
 * chunk; what does not fit is evicted as ever. Counters, rounds and a hold go on. Memory never holds both: at
 * most the larger one, and 16 MiB.
 *
 *     begin() ── step() while 1 ── finish() ── rest() while 1 ── free()
 *
 * All on one thread, while another goes on to append; only finish(), which is bounded by milliseconds, is of
 * the thread that appends, or runs while nobody does. From begin() to finish() nobody else makes a snapshot
 * or appends side-band. From begin() on the frames of both rings are the history: whoever is to go on after a
 * kill wants both descriptors.
 */
struct fr_resize;
/* 0; with D: -EBUSY: there is a snapshot, retained or not; else as fr_history_new(). */
int fr_resize_begin(struct fr_history *h, uint64_t size_bytes, struct fr_resize **ret, struct fr_diag *d);
/* Of two rings that were adopted, of which TO had begun to take over from FROM: to be gone on with by step().
   0; -ENOMEM; -EBADMSG: it is no part of the same history. */
int fr_resize_resume(struct fr_history *from, struct fr_history *to, struct fr_resize **ret);
int fr_resize_fd(const struct fr_resize *z); /* of the new ring; borrowed */
int fr_resize_step(struct fr_resize *z);
/* The new ring: fr_history_fd() is another one, fr_history_section_max() may have grown. */
struct fr_history *fr_resize_finish(struct fr_resize *z, struct fr_history_adopted *what);
/* Gives the old ring back, then takes what the new one has not touched yet. 1: there is more; 0; or a
   negative errno: the machine has not so much. */
int fr_resize_populate(struct fr_resize *z);
struct fr_resize *fr_resize_free(struct fr_resize *z); /* before finish(), both rings go with it */

/* All of that for a ring that nobody else uses meanwhile. The size that it has: nothing to do. */
int fr_history_resize(
	struct fr_history **h, uint64_t size_bytes, struct fr_history_adopted *what, struct fr_diag *d);

/* The largest raw size of a section: for the COMPRESSED feature's mmap_len and for buffers that open a frame.
   More than the ring's own chunks where frames came from a larger ring. */
size_t fr_history_section_max(const struct fr_history *h);

/* The memfd: for a descriptor store, and for fr_recovery_new(). Borrowed. */
int fr_history_fd(const struct fr_history *h);

/* Append LEN (≤ fr_history_append_max(), else -EMSGSIZE) bytes of N whole records with times FIRST … LAST.
   What is long enough for a chunk of its own becomes one from where it lies, without a copy. 0; 1: the chunk
   that was open, or this run, had to be dropped (counted). Recorder thread. */
size_t fr_history_append_max(const struct fr_history *h); /* at least FR_HISTORY_RUN_MAX */
int fr_history_append(struct fr_history *h, const void *records, size_t len, uint32_t n, uint64_t first_ns,
	uint64_t last_ns);
/* The same for side-band; from any thread. 0; 1: the log and the side-band buffer are full of what a snapshot
   pins, and this run was dropped (counted): side-band has to be gathered anew. Chunks that are dropped here
   to make room are counted only. Records that are not fresh from a kernel ring carry the time of a
   fr_history_freeze() that has not been released: readers rely on time for their order. */
int fr_history_append_sideband(struct fr_history *h, const void *records, size_t len, uint32_t n,
	uint64_t first_ns, uint64_t last_ns);

/* A round is one pass over all kernel rings. SINCE_NS is the time of its begin, less what a record may take
   from its time stamp into its ring: what the round does not find there is not older. 0: not known. At its
   end a FINISHED_ROUND is appended where a reader may rely on it: at most once per frame, and only for a
   round that began after the frame with the one before was closed (the proof is in history.c). The image
   keeps SINCE_NS of the last round that has ended, for who adopts it. Recorder thread. */
void fr_history_begin_round(struct fr_history *h, uint64_t since_ns);
void fr_history_end_round(struct fr_history *h);

/* From now on and until the release, chunks promise nothing that is younger than now, which is returned:
   records with that time may be appended. One at a time; any thread. */
uint64_t fr_history_freeze(struct fr_history *h);
void fr_history_unfreeze(struct fr_history *h);

/* Close the open chunk now, where it holds anything, so that a snapshot sees all of it. 0; 1: dropped.
 * Recorder thread. */
int fr_history_seal(struct fr_history *h);

struct fr_history_stats {
	uint64_t size_bytes;	    /* the memfd */
	uint64_t used_bytes;	    /* of it, by frames and the open chunk */
	uint64_t raw_bytes;	    /* what the frames hold, uncompressed, with the open chunk */
	uint64_t first_ns, last_ns; /* oldest and newest sample */
	uint64_t low_watermark_ns;  /* nothing in it is older; 0: not known */
	uint64_t frames, samples, sideband;
	uint64_t frames_evicted, samples_evicted;
	uint64_t chunks_dropped, samples_dropped; /* FR_LOSS_BACK_PRESSURE */
	uint64_t sideband_dropped;		  /* records; FR_LOSS_SIDEBAND */
	uint64_t pinned_bytes;
	uint64_t compress_ns; /* time spent in zstd */
};
void fr_history_stats(struct fr_history *h, struct fr_history_stats *ret);

/*
 * A snapshot is every frame from the oldest to the newest at the time of the call, pinned. next() hands them
 * out oldest first and unpins what it handed out before; a frame is valid until the next call. Free unpins
 * the rest.
 */
struct fr_snapshot;
int fr_history_snapshot(struct fr_history *h, struct fr_snapshot **ret);
/* 1: a frame, 0: no more. */
int fr_snapshot_next(struct fr_snapshot *s, struct fr_frame *ret);
/* Start again at the oldest. Only before the first next(), or where keep_pinned was set. */
void fr_snapshot_keep_pinned(struct fr_snapshot *s, bool keep);
void fr_snapshot_rewind(struct fr_snapshot *s);
void fr_snapshot_size(const struct fr_snapshot *s, uint64_t *ret_frames, uint64_t *ret_bytes);
/* Of its oldest frame; where it has none, of what comes next. */
uint64_t fr_snapshot_low_watermark(const struct fr_snapshot *s);
/*
 * For what a dump that failed may try again later: keep the newest of the snapshot's frames that are still
 * there, as many as fit into half of the log, and have the ring go around them, lap by lap, in the other
 * half. What is older leaves the ring now. The snapshot is at its oldest frame then, which is also the
 * ring's, and pins it until fr_snapshot_unpin(): time to learn the state before it. It may be read as often
 * as is wanted; free ends it. One snapshot at a time can be retained. 0, and *RET_LOST is the number of
 * samples that the snapshot no longer has; 1: nothing of it is left, or would fit; -EBUSY: another one is
 * retained, or pins what would have to go; -ENOMEM. It is as good as freed where this is not 0.
 */
int fr_snapshot_retain(struct fr_snapshot *s, uint64_t *ret_lost);
/* The samples of a retained snapshot that are nowhere else: the ring has evicted their frames. */
uint64_t fr_snapshot_evicted_samples(struct fr_snapshot *s);
void fr_snapshot_unpin(struct fr_snapshot *s);
struct fr_snapshot *fr_snapshot_free(struct fr_snapshot *s);
