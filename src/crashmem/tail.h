/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process model at the ring's tail, in the crash memory. It is a checkpoint (the records of the tail model when it
 * had the side-band of all frames up to one sequence number) and, after it, the side-band sections of the frames that
 * the ring has evicted since. So a dump after a crash of the machine needs no perf.data.auxiliary.
 *
 *     two slots for checkpoints, written in turns │ a circular log of sections
 *
 * The thread that evicts a frame appends its section (a memcpy). When the log is half full, the tracker writes a
 * checkpoint. The crash memory can end at any byte of a write: each slot and each section has a crc32c.
 */

#include "crashmem/crashmem.h"

struct fr_tail;

/* Begins an empty tail in the area FLIGHTREC_CRASHMEM_AREA_TAIL of M (borrowed), which was just formatted. Returns 0; or
   -ENOMEM. */
int fr_tail_new(struct fr_crashmem *m, struct fr_tail **ret);
/* Continues the tail that a recorder of this boot left in the area, for an adopted ring. Returns 0; -EBADMSG if it is not whole: the caller
   then begins a new one; or -ENOMEM. */
int fr_tail_adopt(struct fr_crashmem *m, struct fr_tail **ret);
struct fr_tail *fr_tail_free(struct fr_tail *t);

/* Appends the side-band section (one zstd frame; LEN can be 0) of the evicted frame SEQ, whose low watermark is
   LOW_WATERMARK_NS. If the log is full, the oldest sections are overwritten and counted. Any thread, one call at a time. Waits for nothing. */
void fr_tail_append(struct fr_tail *t, uint64_t seq, uint64_t low_watermark_ns, const void *zstd, size_t len);
/* Returns whether the tracker should write a checkpoint: there is none yet, or the log is half full. Any thread. */
bool fr_tail_wants_checkpoint(const struct fr_tail *t);
/* Writes the checkpoint: records that describe the model after all sections up to SEQ. Returns 0; -E2BIG if they do not
   fit, also compressed; or -ENOMEM. Tracker thread. */
int fr_tail_checkpoint(struct fr_tail *t, uint64_t seq, const void *records, size_t len);
/* Numbers of sections that were overwritten before a checkpoint had them, and of checkpoints that failed. */
struct fr_tail_stats {
	uint64_t sections_lost, checkpoints, checkpoints_failed, checkpoint_bytes;
};
void fr_tail_stats(const struct fr_tail *t, struct fr_tail_stats *ret);

/* Reads the tail that is in M, which is not trusted: calls apply() with the raw records of the newest valid checkpoint, then with the
   raw records of each section after it, oldest first, that belong to frames before BEFORE_SEQ. Sets *RET_WHOLE to whether there is
   a checkpoint and no section is missing. Returns 0; -ENOENT if there is no valid checkpoint and no section; -ENOMEM; or the
   first negative result of apply(). */
int fr_tail_read(const struct fr_crashmem *m, uint64_t before_seq,
	int (*apply)(void *ctx, const void *records, size_t len), void *ctx, bool *ret_whole);
