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

/* How the records of a section are encoded before zstd. The image has these numbers. */
enum fr_encoding {
	FR_ENCODING_RECORDS = 0, /* the records as they are */
	FR_ENCODING_COLUMNS = 1, /* columns.h */
	_FR_ENCODING_MAX
};

/* Each of the two sections is whole records that are compressed by zstd: as one zstd frame, or as two if the
   encoding is columns. A section can be empty: its length is then 0. Side-band is never encoded. */
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
	enum fr_encoding samples_encoding;
	uint32_t samples_dump_len; /* about the length of the samples compressed as records, as in a dump */
};
