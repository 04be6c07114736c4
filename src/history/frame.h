/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A frame of the ring, as readers see it, and the limits of its sections. */

#include <stdint.h>

/* The largest fr_history_section_max() of any ring. */
#define FR_HISTORY_SECTION_MAX (1u << 20)

/* Every ring takes this many bytes in one append. No record is larger, so each fits into an empty chunk. */
#define FR_HISTORY_RUN_MAX (64u << 10)

/* One frame for a reader: two zstd frames of whole records. Each may be empty (len 0). */
struct fr_frame {
	uint64_t seq;
	/* No record in this frame or in a later frame is older than this, except records from overwritable
	   rings. 0: unknown; then no earlier frame was evicted. */
	uint64_t low_watermark_ns;
	uint64_t first_ns, last_ns; /* oldest and newest sample; both 0: there is no sample */
	uint64_t sideband_first_ns, sideband_last_ns;
	uint32_t n_samples, n_sideband;	    /* numbers of records */
	uint32_t samples_raw, sideband_raw; /* bytes before compression */
	const void *samples, *sideband;	    /* compressed sections */
	uint32_t samples_len, sideband_len;
};
