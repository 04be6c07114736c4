/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the image of a ring whose recorder has ended or was killed: every whole frame, oldest first, and the
 * whole records of the open chunk. The image can be truncated, damaged or forged (docs/design/22). The
 * functions do not change the image. One thread at a time uses an fr_recovery.
 *
 * Recovery also finds frames that were evicted but not yet overwritten. They are older than the other frames.
 */

#include "history/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_recovery;

/* Searches IMAGE of LEN bytes. IMAGE is borrowed, is aligned to 8, and must not change. Returns 0 or -ENOMEM.
   An image without frames is not an error. */
int fr_recovery_new(const void *image, size_t len, struct fr_recovery **ret);
struct fr_recovery *fr_recovery_free(struct fr_recovery *r);
static inline void fr_recoveryp(struct fr_recovery **r)
{
	fr_recovery_free(*r);
}
#define _cleanup_recovery_ _cleanup_(fr_recoveryp)

/* Sets RET to the next frame, oldest first. RET points into the image. Only the crcs of a frame are checked,
   so a section in a forged image can be invalid zstd. Returns 1 if RET has a frame; 0 if there are no more
   frames. */
int fr_recovery_next(struct fr_recovery *r, struct fr_frame *ret);

/* Raw records of the open chunk, up to the last whole record. The pointers are NULL and the lengths are 0 if
   there are no records, if the image header is damaged, or if the newest frame has these records already. */
struct fr_recovered_open {
	const void *sideband, *samples;
	size_t sideband_len, samples_len;
};
void fr_recovery_open_chunk(const struct fr_recovery *r, struct fr_recovered_open *ret);
/* The same for an image in memory that has survived a crash of the machine (docs/design/25): the open chunk
   of the newest commit whose crcs are right. Sets RET_COMMIT (layout.h) to this commit. Returns false if
   there is no such commit, and then sets both to zeros. */
struct fr_image_commit;
bool fr_recovery_committed_chunk(
	const struct fr_recovery *r, struct fr_recovered_open *ret, struct fr_image_commit *ret_commit);

struct fr_recovery_stats {
	uint64_t frames; /* valid frames */
	uint64_t gaps;	 /* missing sequence numbers between the oldest and the newest frame */
	bool header_ok;	 /* the image header is valid */
};
void fr_recovery_stats(const struct fr_recovery *r, struct fr_recovery_stats *ret);
