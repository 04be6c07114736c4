/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A frame of the ring, as readers see it, and the limits of its sections. */

#include <stdint.h>

/* The largest fr_history_section_max() of any ring. */
#define FR_HISTORY_SECTION_MAX (1u << 20)

/* Bytes that every ring takes in one append. A record is never larger, so it fits into an empty chunk. */
#define FR_HISTORY_RUN_MAX (64u << 10)

/* One frame for a reader: two zstd frames of whole records. Each may be empty (len 0). */
struct fr_frame {
	uint64_t seq;
	/* No record in this or a later frame is older, except those from overwritable rings. 0: unknown, and
	   no frame was evicted before it. */
	uint64_t low_watermark_ns;
	uint64_t first_ns, last_ns; /* of its samples; 0, 0: it has none */
	uint64_t sideband_first_ns, sideband_last_ns;
	uint32_t n_samples, n_sideband;	    /* records */
	uint32_t samples_raw, sideband_raw; /* bytes before compression */
	const void *samples, *sideband;	    /* zstd */
	uint32_t samples_len, sideband_len;
};
