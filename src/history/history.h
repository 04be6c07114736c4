/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ring: the newest records of the machine, compressed, in one memfd of a fixed size.
 *
 *     header │ open chunk: side-band buffer, sample buffer │ circular log of frames
 *
 * Records are appended to the open chunk. A full chunk is sealed: it becomes a frame at the head of the log,
 * and the oldest frames are evicted for its room. A snapshot pins frames, so that they are not evicted while
 * it is read. Appends then use a reserve of the log. When that is full, the newest chunk is dropped and
 * counted.
 *
 * Threads: the recorder thread appends samples, begins and ends rounds, and seals. Any thread may append
 * side-band and use snapshots. No function here waits, but for a mutex that is locked for a memcpy or a seal.
 */

#include "base/diag.h"
#include "history/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_HISTORY_SIZE_MIN (1ULL << 20)
#define FR_HISTORY_SIZE_MAX (16ULL << 30)

struct fr_history;

struct fr_history_config {
	uint64_t size_bytes; /* of the memfd. At level 1, zstd needs 2 MiB more */
	bool populate;	     /* take all memory now: a machine in trouble may have no page left later */
	bool keep_size;	     /* an adopted ring keeps its size if its layout is valid */
	int level; /* of zstd. 1 is best for kernel records: lower levels need more time for longer frames */
	/* Called for each evicted frame, oldest first, on the thread that seals, with the lock held. It must
	   not call the history. */
	void (*evicted)(void *ctx, const struct fr_frame *frame);
	void *ctx;
};

/* The size is rounded down to whole pages. Returns 0; with D: -EINVAL for a size outside of the limits or a
   level that zstd has not; -ENOMEM if `populate` is set and the machine has not enough memory. */
int fr_history_new(const struct fr_history_config *config, struct fr_history **ret, struct fr_diag *d);
struct fr_history *fr_history_free(struct fr_history *h); /* all snapshots are freed before */

/* What a ring took over from another one. */
struct fr_history_adopted {
	uint64_t frames, samples, sideband; /* records; with those of the open chunk */
	uint64_t first_ns, last_ns;	    /* oldest and newest sample; 0: none */
	uint64_t low_watermark_ns;	    /* of the oldest frame; 0: unknown */
	uint64_t drained_ns; /* everything in the kernel rings up to this time is in the ring; 0: unknown */
	bool in_place;	     /* the memory is the same. False: a new memfd has copies */
	uint64_t frames_left_out; /* valid frames that do not fit, or that a gap separates from newer ones.
				     Some may have been evicted before */
};

/*
 * Adopt the ring in FD, whose process may have been killed at any instant. FD is a memfd with size seals. The
 * ring takes over the newest run of frames without a gap, and the open chunk. If size and layout are those of
 * CONFIG, it goes on in place. Otherwise it copies the newest frames that fit. Sequence numbers continue.
 * config->evicted is not called for frames that are left out (docs/design/22).
 *
 * Returns 0, and FD is consumed. -EBADMSG with D: FD is not a ring, is of another version, or is damaged as a
 * whole. Other errors as fr_history_new(). On an error FD stays the caller's, and a second attempt finds the
 * same.
 */
int fr_history_adopt(const struct fr_history_config *config, int fd, struct fr_history **ret,
	struct fr_history_adopted *ret_adopted, struct fr_diag *d);
uint64_t fr_history_size(const struct fr_history *h); /* of the memfd */
uint64_t fr_history_whole_pages(uint64_t size);	      /* the size of a memfd for a configured SIZE */

/*
 * Change the size of a ring while records are appended (docs/design/23). A new ring takes over the newest
 * frames that fit, and the open chunk; other frames are evicted. Counters, rounds and a freeze continue.
 * Memory use is at most that of the larger ring and 16 MiB.
 *
 *     begin() ── step() while 1 ── finish() ── populate() while 1 ── free()
 *
 * One thread calls them, while another appends. Only finish() runs on the thread that appends, or while
 * nobody appends; it takes milliseconds. From begin() to finish() no thread makes a snapshot or appends
 * side-band, and the frames of both rings are the history: only both descriptors together survive a kill.
 */
struct fr_resize;
/* Returns 0; with D: -EBUSY: there is a snapshot; other errors as fr_history_new(). */
int fr_resize_begin(struct fr_history *h, uint64_t size_bytes, struct fr_resize **ret, struct fr_diag *d);
/* Continue with two adopted rings: TO had taken over frames from FROM. Next is step(). Returns 0; -ENOMEM;
   -EBADMSG: they are not one history. */
int fr_resize_resume(struct fr_history *from, struct fr_history *to, struct fr_resize **ret);
int fr_resize_fd(const struct fr_resize *z); /* of the new ring; borrowed */
int fr_resize_step(struct fr_resize *z);
/* Returns the new ring. It has another fr_history_fd() and maybe a larger fr_history_section_max(). */
struct fr_history *fr_resize_finish(struct fr_resize *z, struct fr_history_adopted *ret_adopted);
/* Free the old ring, then take the memory that the new one has not touched yet. Returns 1: call it again; 0;
   or a negative errno: the machine has not enough memory. */
int fr_resize_populate(struct fr_resize *z);
struct fr_resize *fr_resize_free(struct fr_resize *z); /* before finish() it also frees both rings */

/* The largest raw size of a section: for the COMPRESSED feature's mmap_len and for buffers of readers. Frames
   from a larger ring may be larger than the ring's own chunks. */
size_t fr_history_section_max(const struct fr_history *h);

/* The memfd: for a descriptor store, and for fr_recovery_new(). Borrowed. */
int fr_history_fd(const struct fr_history *h);

/* Append LEN bytes (at most fr_history_append_max()) of N whole records with times FIRST … LAST. A run that
   is long enough becomes a frame without a copy. Returns 0; 1: the open chunk or this run was dropped and
   counted; -EMSGSIZE. Recorder thread. */
size_t fr_history_append_max(const struct fr_history *h); /* at least FR_HISTORY_RUN_MAX */
int fr_history_append(struct fr_history *h, const void *records, size_t len, uint32_t n, uint64_t first_ns,
	uint64_t last_ns);
/* The same for side-band, at most FR_HISTORY_RUN_MAX. Returns 1 only if this run was dropped: a snapshot pins
   the log and the buffer is full, so a scan is due. Records that do not come from a kernel ring have the time
   of a fr_history_freeze() that still holds, as readers order records by time. Any thread. */
int fr_history_append_sideband(struct fr_history *h, const void *records, size_t len, uint32_t n,
	uint64_t first_ns, uint64_t last_ns);

/* SINCE_NS is the begin of the round, less the time that a record may take from its time stamp to its ring.
   Records that come after the round are not older. 0: unknown. The end appends a FINISHED_ROUND if a reader
   may rely on it (docs/design/20). The image keeps SINCE_NS of the last round that has ended. Recorder
   thread. */
void fr_history_begin_round(struct fr_history *h, uint64_t since_ns);
void fr_history_end_round(struct fr_history *h);

/* Freeze the low watermark of new chunks at the current time, which is returned: records with that time may
   be appended until the unfreeze. One freeze at a time. Any thread. */
uint64_t fr_history_freeze(struct fr_history *h);
void fr_history_unfreeze(struct fr_history *h);

/* Seal the open chunk if it has records, so that a snapshot has all of them. Returns 0; 1: it was dropped and
   counted. Recorder thread, or while nobody appends. */
int fr_history_seal(struct fr_history *h);

struct fr_history_stats {
	uint64_t size_bytes;	    /* of the memfd */
	uint64_t used_bytes;	    /* of it, by frames and the open chunk */
	uint64_t raw_bytes;	    /* of frames and the open chunk before compression */
	uint64_t first_ns, last_ns; /* oldest and newest sample */
	uint64_t low_watermark_ns;  /* of the oldest frame; 0: unknown */
	uint64_t frames, samples, sideband;
	uint64_t frames_evicted, samples_evicted;
	uint64_t chunks_dropped, samples_dropped; /* FR_LOSS_BACK_PRESSURE */
	uint64_t sideband_dropped;		  /* records; FR_LOSS_SIDEBAND */
	uint64_t pinned_bytes;
	uint64_t compress_ns; /* time in zstd */
};
void fr_history_stats(struct fr_history *h, struct fr_history_stats *ret);

/* A snapshot pins all frames of the log. 0 or -ENOMEM. Any thread; then one thread at a time uses the
 * snapshot. */
struct fr_snapshot;
int fr_history_snapshot(struct fr_history *h, struct fr_snapshot **ret);
/* The next frame, oldest first, valid until the next call. It unpins the frame before. 1: a frame; 0: no
 * more. */
int fr_snapshot_next(struct fr_snapshot *s, struct fr_frame *ret);
/* Keep frames pinned, so that rewind() may be called after next(). */
void fr_snapshot_keep_pinned(struct fr_snapshot *s, bool keep);
void fr_snapshot_rewind(struct fr_snapshot *s);
void fr_snapshot_size(const struct fr_snapshot *s, uint64_t *ret_frames, uint64_t *ret_bytes);
/* Of the oldest frame; of the next chunk if there is none. */
uint64_t fr_snapshot_low_watermark(const struct fr_snapshot *s);
/*
 * Keep a snapshot for a dump that failed, for a later attempt (docs/design/24). The ring evicts what is
 * older, and S keeps the newest of its frames that fit into half of the log. The ring goes around them. S
 * pins the oldest of them, which is then also the ring's oldest, until fr_snapshot_unpin(): the caller saves
 * the tail model meanwhile. S can be read any number of times. Only one snapshot can be retained.
 *
 * Returns 0 and in *RET_LOST the number of samples that S has no more; 1: no frame is left, or fits; -EBUSY:
 * another snapshot is retained, or pins what would be evicted; -ENOMEM. If it is not 0, only free S.
 */
int fr_snapshot_retain(struct fr_snapshot *s, uint64_t *ret_lost);
/* Samples of a retained snapshot that the ring has evicted: no other place has them. */
uint64_t fr_snapshot_evicted_samples(struct fr_snapshot *s);
void fr_snapshot_unpin(struct fr_snapshot *s);
struct fr_snapshot *fr_snapshot_free(struct fr_snapshot *s);
