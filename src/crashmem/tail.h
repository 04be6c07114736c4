/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process model at the ring's tail, in the crash memory. A dump of a ring begins with this model. After a
 * crash of the machine, the model of the tracker is gone, and perf.data.auxiliary can lack its end. So the
 * crash memory has:
 *
 *     head │ two slots for checkpoints, written in turns │ a circular log of sections
 *
 * A checkpoint has the records of the tail model, when this model had the side-band (records that are not
 * samples) of all evicted frames up to one sequence number. The log has the side-band sections of the frames
 * that the ring has evicted since. The thread that evicts a frame appends its section. When the log is half
 * full, the tracker writes a checkpoint. A crash can come at any byte of a write, so each slot and each
 * section has a crc: docs/design/26.
 */

#include "crashmem/crashmem.h"

#include <stdbool.h>

/* The largest section before compression (FR_HISTORY_SECTION_MAX). */
#define FR_TAIL_SECTION_MAX (1u << 20)

struct fr_tail;

/* Begins an empty tail in the area TAIL of M. M is borrowed, and has a valid header. The area can have any
   content. The tail wants a checkpoint. Returns 0; -ENOMEM; -ENOSPC if the area is too small; or an error of
   getrandom(). */
int fr_tail_new(struct fr_crashmem *m, struct fr_tail **ret);
/* Continues the tail that another recorder of this boot has left in the area, for a ring that is adopted in
   place. EVICTED_SEQ is the sequence number of the frame before the oldest frame of the ring. Returns 0;
   -EBADMSG if the area has no whole tail up to this frame: the caller then calls fr_tail_new(); or -ENOMEM.
 */
int fr_tail_adopt(struct fr_crashmem *m, uint64_t evicted_seq, struct fr_tail **ret);
/* Does not change the memory. T may be NULL. Returns NULL. */
struct fr_tail *fr_tail_free(struct fr_tail *t);

/* Appends the side-band section of an evicted frame: one zstd frame of LEN bytes. LEN can be 0. SEQ and
   LOW_WATERMARK_NS are those of the frame. Call this function for each evicted frame. If the log is full, the
   oldest sections are overwritten. A section that the newest checkpoint does not have then counts as lost,
   and the tail wants a checkpoint. Any thread, one call at a time. Waits for nothing, and allocates nothing.
 */
void fr_tail_append(struct fr_tail *t, uint64_t seq, uint64_t low_watermark_ns, const void *zstd, size_t len);

/* Returns whether the tracker should write a checkpoint: there is none, a section was lost, or the log is
   half full. Any thread. */
bool fr_tail_wants_checkpoint(const struct fr_tail *t);
/* Writes a checkpoint: RECORDS, LEN bytes, are the model after the side-band of all evicted frames up to SEQ.
   Records that are older than LOW_WATERMARK_NS, and records of time 0, describe the model. The other records
   are side-band that the model does not have yet. Returns 0; -E2BIG if the records do not fit into a slot,
   although compressed; or -ENOMEM. After an error, the older checkpoints remain. Tracker thread. */
int fr_tail_checkpoint(
	struct fr_tail *t, uint64_t seq, uint64_t low_watermark_ns, const void *records, size_t len);

struct fr_tail_stats {
	uint64_t checkpoints, checkpoints_failed;
	uint64_t checkpoint_bytes; /* size of the newest checkpoint, compressed */
	uint64_t slot_bytes;	   /* the largest size of a checkpoint */
	uint64_t sections_lost;	   /* sections that were overwritten before a checkpoint had them */
	uint64_t log_bytes;
	uint64_t log_used_bytes; /* sections that the newest checkpoint does not have */
};
/* Any thread. */
void fr_tail_stats(const struct fr_tail *t, struct fr_tail_stats *ret);

/* A checkpoint or a section, as fr_tail_read() gives it. */
struct fr_tail_part {
	bool is_checkpoint;
	uint64_t seq;
	uint64_t low_watermark_ns; /* see fr_tail_checkpoint(); of a section: no later part has older records
				    */
	const void *records;	   /* decompressed, borrowed during the call, aligned to 8; not trusted */
	size_t len;
};
/* Reads the tail in M, which is not trusted. Calls apply() for one checkpoint, and then for each section
   after it that belongs to a frame before BEFORE_SEQ, in the order of the frames. The checkpoint is the
   newest one that is not later than these frames, and after which no section is missing. If there is none,
   another checkpoint, or no checkpoint, is used. Sets *RET_WHOLE to whether nothing is missing. Returns 0;
   -ENOENT if there is neither a checkpoint nor a section; -ENOMEM; or the first negative result of apply().
 */
int fr_tail_read(const struct fr_crashmem *m, uint64_t before_seq,
	int (*apply)(void *ctx, const struct fr_tail_part *part), void *ctx, bool *ret_whole);

/* Returns the sequence number of the newest frame that the ring had evicted, as the tail in M says; 0: none,
   or not known. The memory is not trusted. */
uint64_t fr_tail_evicted_seq(const struct fr_crashmem *m);
