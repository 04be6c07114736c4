/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reading the image of a ring whose recorder is gone: every frame that is whole, oldest first, and the
 * complete records of the chunk that was open. The image may be truncated, damaged or made up: see the
 * corruption rules in history/layout.h. Reads only; one thread.
 *
 * Frames that were evicted but not yet overwritten are found too: they are older history, still in order.
 */

#include "history/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_recovery;

/* Scan IMAGE (borrowed, aligned to 8, must not change) of LEN bytes. 0, or -ENOMEM. An image without any
   whole frame is not an error: next() has nothing to say then. */
int fr_recovery_new(const void *image, size_t len, struct fr_recovery **ret);
struct fr_recovery *fr_recovery_free(struct fr_recovery *r);
static inline void fr_recoveryp(struct fr_recovery **r)
{
	fr_recovery_free(*r);
}
#define _cleanup_recovery_ _cleanup_(fr_recoveryp)

/* 1: a frame, into RET (pointers into the image); 0: no more. The crc held, but the zstd sections are as
   trustworthy as who wrote them: open them with fr_section_decompress(). */
int fr_recovery_next(struct fr_recovery *r, struct fr_frame *ret);

/* Raw records of the open chunk, up to the last whole one; NULL and 0 where there are none, where the header
   is damaged, or where the chunk had been sealed into the newest frame. */
struct fr_recovered_open {
	const void *sideband, *samples;
	size_t sideband_len, samples_len;
};
void fr_recovery_open_chunk(const struct fr_recovery *r, struct fr_recovered_open *ret);

struct fr_recovery_stats {
	uint64_t frames;     /* whole */
	uint64_t bad_frames; /* places that had a frame's magic, and failed a check */
	uint64_t gaps;	     /* missing sequence numbers between the oldest and the newest frame */
	bool header_ok;
};
void fr_recovery_stats(const struct fr_recovery *r, struct fr_recovery_stats *ret);
