/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ring: the newest records of the machine, compressed, in one memfd of a fixed size, or in memory that
 * survives a crash of the machine.
 *
 *     header │ open chunk: side-band buffer, sample buffer │ circular log of frames
 *
 * Records are appended to the open chunk. A full chunk is sealed: it is compressed into a frame at the head
 * of the log, and the oldest frames are evicted (removed) to make room. A snapshot pins frames: they are not
 * evicted while the snapshot is read. If pinned frames stop the eviction, new frames go into the reserve of
 * the log. When the reserve is full, the samples of the newest chunk are dropped and counted. The side-band
 * of that chunk (all records that are not samples) is kept (docs/design/21).
 *
 * Threads: the recorder thread appends samples, begins and ends rounds, and seals. In a round, it reads all
 * kernel rings once. Any thread may append side-band and use snapshots. These functions wait only for the
 * mutex of the ring (for the time of a memcpy), and for the end of a seal. A comment that ends with "Recorder
 * thread." or "Any thread." says which threads may call the function.
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
	uint64_t size_bytes; /* size of the memfd. At level 1, a seal needs 4 MiB of memory in addition */
	bool populate;	     /* allocate all pages now, because the machine may have no free page later */
	bool keep_size;	     /* fr_history_adopt(): keep the old ring's size if its layout is valid */
	/* The memory of the ring, which survives a crash of the machine (docs/design/25); borrowed. NULL: the
	   ring makes a memfd. With a memory, size_bytes, populate and keep_size do not count, there is no
	   fr_history_fd(), and the size cannot be changed. The memory of a new ring must be zeros, because
	   recovery could find old frames in it. */
	struct fr_history_memory {
		uint8_t *at;
		uint64_t bytes;
		/* Writes the cache lines of [P, P + LEN) back to the memory, and waits for the end. */
		void (*write_back)(const void *p, size_t len);
	} memory;
	/* fr_history_adopt() with a memory: the machine has crashed since the last write, so only records
	   with a right crc are taken over. */
	bool crashed;
	/* fr_history_adopt() with a memory: the ring will only be read. The frames that use the reserve of
	   the log are taken over, too, and there is no reserve any more. So MIN_SEQ, the sequence number
	   after that of the newest evicted frame, says which frames the ring had. */
	bool rescue;
	uint64_t min_seq;
	int level; /* zstd level; 1 is recommended: a lower level makes larger frames, and needs more time */
	/* Called for each evicted frame, oldest first, one call at a time, on a thread that seals, retains a
	   snapshot or changes the size. During the call, the lock of the ring can be held, so evicted() must
	   not call any function of this header. */
	void (*evicted)(void *ctx, const struct fr_frame *frame);
	void *ctx;
};

/* Makes an empty ring. Its size is rounded down to whole pages. Returns 0; or a negative errno, with a
   message in D: -EINVAL if the size is outside of the limits, or if zstd has no such level; -ENOMEM if there
   is not enough memory. */
int fr_history_new(const struct fr_history_config *config, struct fr_history **ret, struct fr_diag *d);
/* H may be NULL; returns NULL. If H has snapshots, they stay valid, and the memory is freed with the last of
 * them. */
struct fr_history *fr_history_free(struct fr_history *h);

/* The content that a ring took over from another ring. */
struct fr_history_adopted {
	uint64_t frames;
	uint64_t samples, sideband; /* numbers of records in the frames and in the open chunk */
	uint64_t first_ns, last_ns; /* times of the oldest and of the newest sample; 0: there is no sample */
	/* Low watermark of the oldest frame; if there is no frame, of the open chunk; 0: unknown. */
	uint64_t low_watermark_ns;
	uint64_t drained_ns; /* the ring has all records of the kernel rings up to this time; 0: unknown */
	bool in_place;	     /* true: the memory is the same; false: a new memfd has copies of the frames */
	/* Number of valid frames that are not taken over, because they do not fit (counted only if in_place
	   is false), or because a gap separates them from newer frames. Frames that the other ring has
	   evicted but not overwritten can be among them. If the open chunk is not taken over, it counts as
	   one more frame. */
	uint64_t frames_left_out;
};

/*
 * Adopts the ring in the memfd FD, whose size must be sealed. It does not matter when the process that wrote
 * the ring was killed. The new ring takes over the open chunk, and the newest frames whose sequence numbers
 * have no gap. If the old ring has the size and layout of CONFIG, the new ring uses its memory. Otherwise it
 * gets a new memfd, and copies the newest frames that fit. Sequence numbers continue. config->evicted is not
 * called for frames that are left out (docs/design/22).
 *
 * If FD is -1, the function adopts the ring in CONFIG->memory, in place. If CONFIG has a memory and FD is a
 * memfd, the frames are copied into the memory.
 *
 * Returns 0, and FD then belongs to the ring. Otherwise returns a negative errno, with a message in D:
 * -EBADMSG if FD is not a ring, has another version, or has neither a valid frame nor a valid header; or an
 * error of fr_history_new(). After an error, FD still belongs to the caller, and its content has not changed.
 */
int fr_history_adopt(const struct fr_history_config *config, int fd, struct fr_history **ret,
	struct fr_history_adopted *ret_adopted, struct fr_diag *d);
uint64_t fr_history_size(const struct fr_history *h); /* size of the memfd or memory */
int fr_history_level(const struct fr_history *h);     /* fr_history_config.level */
uint64_t fr_history_whole_pages(uint64_t size);	      /* the size that a memfd gets for a configured SIZE */

/*
 * These functions change the size of a ring while records are appended (docs/design/23). A new ring takes
 * over the newest frames that fit, and the open chunk; other frames are evicted. Counters, rounds and a
 * freeze (fr_history_freeze()) continue. A resize needs at most 16 MiB more memory than the larger ring.
 *
 *     begin() ── step() until it returns 0 ── finish() ── populate() while it returns 1 ── free()
 *
 * One thread makes these calls, while the recorder thread goes on appending. The exception is finish(): call
 * it on the recorder thread, or while no thread appends. finish() takes milliseconds. From begin() to
 * finish(), no thread may make a snapshot, and only the recorder thread may append side-band. In this time,
 * some frames are in the old ring and the others in the new ring, so the next instance needs the descriptors
 * of both rings.
 */
struct fr_resize;
/* Makes the new ring. Returns 0; or a negative errno, with a message in D: -EBUSY if there is a snapshot;
   -ENOTSUP if the ring has a memory of its own (fr_history_config.memory); or an error of
   fr_history_new(). */
int fr_resize_begin(struct fr_history *h, uint64_t size_bytes, struct fr_resize **ret, struct fr_diag *d);
/* Continues the resize of a killed instance, which had moved frames from FROM to TO. The caller has adopted
   both rings, and calls step() next. Returns 0; -ENOMEM; or -EBADMSG if there is a gap between the newest
   frame of TO and the oldest frame of FROM. */
int fr_resize_resume(struct fr_history *from, struct fr_history *to, struct fr_resize **ret);
/* Finishes the resize of a killed instance: moves the remaining frames of *H to NEXT, which the caller has
   adopted. Returns 0, sets *H to NEXT, and *RET to its content; or an error of fr_resize_resume(): then *H
   does not change, and NEXT is freed. */
int fr_resize_finish_interrupted(
	struct fr_history **h, struct fr_history *next, struct fr_history_adopted *ret);
int fr_resize_fd(const struct fr_resize *z); /* descriptor of the new ring; borrowed */
/* Moves some frames. Returns 1 if the caller has to call this function again; 0 if finish() is the next
   call. */
int fr_resize_step(struct fr_resize *z);
/* Returns the new ring, and describes its content in *RET_ADOPTED. The new ring has another fr_history_fd(),
   and maybe a larger fr_history_section_max(). */
struct fr_history *fr_resize_finish(struct fr_resize *z, struct fr_history_adopted *ret_adopted);
/* Frees the old ring. If fr_history_config.populate was true, or after fr_resize_resume(), also allocates the
   next pages of the new ring. Returns 1 if the caller has to call this function again; 0 if all is done; or a
   negative errno if the machine has not enough memory. */
int fr_resize_populate(struct fr_resize *z);
/* Frees Z and the old ring. If finish() was not called, also frees the new ring. Z may be NULL. */
struct fr_resize *fr_resize_free(struct fr_resize *z);

/* Returns the largest size before compression that a section of a frame in this ring has or can get. mmap_len
   of the feature COMPRESSED must have this value, and readers need a buffer of this size. It can be more than
   the size of a section of the open chunk, because the sections of adopted frames can be larger. */
size_t fr_history_section_max(const struct fr_history *h);

/* Returns the sequence number of the oldest frame; if there is no frame, of the open chunk. Call this
   function while no other thread uses the ring. */
uint64_t fr_history_oldest_seq(const struct fr_history *h);

/* Returns the memfd of the ring; it is borrowed. -1: the ring has another memory. */
int fr_history_fd(const struct fr_history *h);

size_t fr_history_append_max(const struct fr_history *h); /* at least FR_HISTORY_RUN_MAX */
/* Appends a run of samples: N whole records with LEN bytes (at most fr_history_append_max()) and with times
   FIRST_NS to LAST_NS. A long run becomes a frame of its own, without a copy into the open chunk. Returns 0;
   1 if the samples of the open chunk or of this run were dropped and counted; or -EMSGSIZE if LEN is too
   large. Recorder thread. */
int fr_history_append(struct fr_history *h, const void *records, size_t len, uint32_t n, uint64_t first_ns,
	uint64_t last_ns);
/* The same for a run from the kernel ring of the CPU with the index CPU_INDEX. A frame can have the runs of
   each CPU together. */
int fr_history_append_from(struct fr_history *h, unsigned cpu_index, const void *records, size_t len,
	uint32_t n, uint64_t first_ns, uint64_t last_ns);
/* Appends side-band, at most FR_HISTORY_RUN_MAX bytes. The records of a scan (one pass over all processes in
   /proc) do not come from a kernel ring: they must have the time that fr_history_freeze() returned, and must
   be appended before fr_history_unfreeze(). Returns 0; 1 if these records were dropped and counted, because
   pinned frames fill the log and the side-band buffer is full (the caller then has to request a scan); or
   -EMSGSIZE. Any thread. */
int fr_history_append_sideband(struct fr_history *h, const void *records, size_t len, uint32_t n,
	uint64_t first_ns, uint64_t last_ns);

/* Begins a round. The caller ensures that the records that are appended after this round are not older than
   SINCE_NS. If SINCE_NS is 0, their times are unknown. The kernel takes the time of a record shortly before
   it puts the record into the kernel ring. So SINCE_NS is the beginning of the round minus the longest such
   delay. Recorder thread. */
void fr_history_begin_round(struct fr_history *h, uint64_t since_ns);
/* Ends the round: stores SINCE_NS of this round as drained_ns in the image (the content of the memfd).
   Recorder thread. */
void fr_history_end_round(struct fr_history *h);

/* Begins a freeze: the low watermarks of new chunks stay at or below the current time. Returns this time. The
   records of a scan have this time, and may be appended until fr_history_unfreeze(). There can be one freeze
   at a time. Any thread. */
uint64_t fr_history_freeze(struct fr_history *h);
void fr_history_unfreeze(struct fr_history *h);

/* Seals the open chunk if it has records, so that a snapshot has these records. Returns 0; or 1 if the
   samples of the chunk were dropped and counted. Call this function on the recorder thread, or while no
   thread appends. */
int fr_history_seal(struct fr_history *h);

struct fr_history_stats {
	uint64_t size_bytes;	    /* size of the memfd */
	uint64_t used_bytes;	    /* bytes of the memfd that frames and the open chunk use */
	uint64_t raw_bytes;	    /* bytes of the same records before compression */
	uint64_t first_ns, last_ns; /* times of the oldest and of the newest sample */
	/* Low watermark of the oldest frame; if there is no frame, of the open chunk; 0: unknown. */
	uint64_t low_watermark_ns;
	uint64_t frames;
	uint64_t samples, sideband; /* numbers of records in the frames and in the open chunk */
	uint64_t frames_evicted, samples_evicted;
	uint64_t chunks_dropped, samples_dropped; /* the losses of FR_LOSS_BACK_PRESSURE */
	uint64_t sideband_dropped;		  /* the number of lost records of FR_LOSS_SIDEBAND */
	uint64_t pinned_bytes;
	uint64_t compress_ns; /* time that zstd took */
};
void fr_history_stats(struct fr_history *h, struct fr_history_stats *ret);

/* Makes a snapshot, which pins all frames of the log. Returns 0 or -ENOMEM. Any thread. Only one thread at a
   time may use the snapshot. */
struct fr_snapshot;
int fr_history_snapshot(struct fr_history *h, struct fr_snapshot **ret);
/* Sets RET to the next frame, oldest first, and unpins the frame of the previous call. RET is valid until the
   next call. Returns 1 if RET has a frame; 0 if there are no more frames. */
int fr_snapshot_next(struct fr_snapshot *s, struct fr_frame *ret);
/* Returns the low watermark of the frame that the next call of fr_snapshot_next() returns; UINT64_MAX if
   there are no more frames. */
uint64_t fr_snapshot_next_low_watermark(const struct fr_snapshot *s);
/* If KEEP is true, later calls of fr_snapshot_next() unpin no frame. So the frames can be read again after
   fr_snapshot_rewind(). If KEEP is false, these calls unpin frames again. */
void fr_snapshot_keep_pinned(struct fr_snapshot *s, bool keep);
/* Makes the next call of fr_snapshot_next() return the oldest frame again. */
void fr_snapshot_rewind(struct fr_snapshot *s);
void fr_snapshot_size(const struct fr_snapshot *s, uint64_t *ret_frames, uint64_t *ret_bytes);
/* Returns the low watermark of the oldest frame of S. If S has no frame: the low watermark of the chunk that
   was open when S was made. */
uint64_t fr_snapshot_low_watermark(const struct fr_snapshot *s);
/*
 * Retains a snapshot whose dump has failed, for a later attempt (docs/design/24). Steps:
 *
 *   1. S keeps the newest of its frames that fit into half of the log.
 *   2. The ring evicts all frames that are older than the frames that S keeps.
 *   3. The ring no longer overwrites the frames of S, even after it has evicted them.
 *   4. The oldest frame of S is now also the oldest frame of the ring. It stays pinned until
 *      fr_snapshot_unpin(), so that the caller can save the tail model: the process model of the time of this
 *      frame.
 *
 * S can then be read any number of times. Only one snapshot can be retained.
 *
 * Returns 0, and sets *RET_LOST to the number of samples that S no longer has. Returns 1 if S has no frame
 * that is still in the ring and fits: S is empty then. Returns -EBUSY if another snapshot is retained, or
 * pins a frame that step 2 would evict; or -ENOMEM. After an error, the caller must free S, and must not use
 * S for anything else.
 */
int fr_snapshot_retain(struct fr_snapshot *s, uint64_t *ret_lost);
/* Returns the number of samples of the retained snapshot S that the ring has evicted. Only S still has these
   samples. */
uint64_t fr_snapshot_evicted_samples(struct fr_snapshot *s);
/* Unpins all frames of S. */
void fr_snapshot_unpin(struct fr_snapshot *s);
struct fr_snapshot *fr_snapshot_free(struct fr_snapshot *s);
