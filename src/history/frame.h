/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A frame of the ring, as readers see it, and the limits of its sections. The ring collects records in an
   open chunk, and compresses the full chunk into a frame. A frame has a section of samples, and a section of
   side-band (all other records). */

#include <stdint.h>

/* The largest possible result of fr_history_section_max(). */
#define FR_HISTORY_SECTION_MAX (1u << 20)

/* A run is a number of whole records that one call appends to the ring. Every ring accepts runs of this many
   bytes. No record has more bytes, so each record fits into an empty chunk. */
#define FR_HISTORY_RUN_MAX (64u << 10)

/* Each of the two sections is whole records that are compressed as one zstd frame. A section can be empty:
   its length is then 0. */
struct fr_frame {
	uint64_t seq; /* sequence number */
	/* No record in this frame or in a later frame is older than this time, except records from
	   overwritable kernel rings. 0: unknown, because the chunk began before the recorder had begun its
	   second round. (In a round, the recorder reads all kernel rings once.) */
	uint64_t low_watermark_ns;
	uint64_t first_ns, last_ns; /* times of the oldest and of the newest sample; 0: no sample */
	uint64_t sideband_first_ns, sideband_last_ns;
	uint32_t n_samples, n_sideband;	    /* numbers of records */
	uint32_t samples_raw, sideband_raw; /* bytes before compression */
	const void *samples, *sideband;	    /* compressed sections */
	uint32_t samples_len, sideband_len;
};
