/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A frame of the ring, as readers see it, and the limits of its sections. */

#include <stdint.h>

/* The largest fr_history_section_max() of any ring. */
#define FR_HISTORY_SECTION_MAX (1u << 20)

/* Every ring accepts this many bytes in one append. No record has more bytes, so each record fits into an
   empty chunk. */
#define FR_HISTORY_RUN_MAX (64u << 10)

/* One frame for a reader. Each of its two sections is one zstd frame of whole records, or is empty (len
   0). */
struct fr_frame {
	uint64_t seq;
	/* No record in this frame or in a later frame is older than this, except records from overwritable
	   rings. 0: unknown, because the chunk began before the second round. */
	uint64_t low_watermark_ns;
	uint64_t first_ns, last_ns; /* times of the oldest and of the newest sample; both 0: no sample */
	uint64_t sideband_first_ns, sideband_last_ns;
	uint32_t n_samples, n_sideband;	    /* numbers of records */
	uint32_t samples_raw, sideband_raw; /* bytes before compression */
	const void *samples, *sideband;	    /* compressed sections */
	uint32_t samples_len, sideband_len;
};
