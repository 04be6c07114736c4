/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the image of a ring whose recorder is gone: every whole frame, oldest first, and the whole records of
 * the open chunk. The image may be truncated, damaged or forged (docs/design/22). One thread; it only reads.
 *
 * It also finds frames that were evicted but not yet overwritten. They are older history, and in order.
 */

#include "history/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_recovery;

/* Search IMAGE of LEN bytes, which is borrowed, aligned to 8, and must not change. 0 or -ENOMEM. An image
   without frames is no error. */
int fr_recovery_new(const void *image, size_t len, struct fr_recovery **ret);
struct fr_recovery *fr_recovery_free(struct fr_recovery *r);
static inline void fr_recoveryp(struct fr_recovery **r)
{
	fr_recovery_free(*r);
}
#define _cleanup_recovery_ _cleanup_(fr_recoveryp)

/* 1: the next frame is in RET, with pointers into the image; 0: no more. Only its crc is checked: a forged
   section may not be valid zstd. */
int fr_recovery_next(struct fr_recovery *r, struct fr_frame *ret);

/* Raw records of the open chunk, up to the last whole one. NULL and 0: there are none, the header is damaged,
   or the newest frame has them already. */
struct fr_recovered_open {
	const void *sideband, *samples;
	size_t sideband_len, samples_len;
};
void fr_recovery_open_chunk(const struct fr_recovery *r, struct fr_recovered_open *ret);

struct fr_recovery_stats {
	uint64_t frames;     /* whole */
	uint64_t bad_frames; /* places with a frame's magic that failed a check */
	uint64_t gaps;	     /* missing sequence numbers between the oldest and the newest frame */
	bool header_ok;
};
void fr_recovery_stats(const struct fr_recovery *r, struct fr_recovery_stats *ret);
