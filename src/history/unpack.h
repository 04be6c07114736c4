/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the sections of frames: decompresses a section, counts its records, and removes the records outside
 * of a window.
 *
 * Sections can come from a damaged image. Every length is checked: nothing outside of the section is read,
 * and nothing outside of the buffer is written. One thread at a time uses an fr_unpack.
 */

#include "history/frame.h"
#include "perfdata/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A context for many decompressions. */
struct fr_unpack;
/* Returns 0 or -ENOMEM. */
int fr_unpack_new(struct fr_unpack **ret);
struct fr_unpack *fr_unpack_free(struct fr_unpack *u);
static inline void fr_unpackp(struct fr_unpack **u)
{
	fr_unpack_free(*u);
}
#define _cleanup_unpack_ _cleanup_(fr_unpackp)

/* Decompresses a section of LEN bytes to DST, which has room for CAP bytes and is aligned to 8. A CAP of
   fr_history_section_max() is enough for any section of a ring. ENCODING is the encoding of the section.
   Returns the raw length (0 if LEN is 0); -EBADMSG if the section is not valid, or its raw length is larger
   than CAP; or -ENOMEM. */
ssize_t fr_section_decompress(
	struct fr_unpack *u, enum fr_encoding encoding, const void *zstd, size_t len, void *dst, size_t cap);
/* The same for the samples of F, and for its side-band. */
static inline ssize_t fr_frame_samples(struct fr_unpack *u, const struct fr_frame *f, void *dst, size_t cap)
{
	return fr_section_decompress(u, f->samples_encoding, f->samples, f->samples_len, dst, cap);
}
static inline ssize_t fr_frame_sideband(struct fr_unpack *u, const struct fr_frame *f, void *dst, size_t cap)
{
	return fr_section_decompress(u, FR_ENCODING_RECORDS, f->sideband, f->sideband_len, dst, cap);
}

/* A number of records and their times. */
struct fr_section_kept {
	uint32_t records;
	uint64_t first_ns, last_ns; /* times of the oldest and the newest record; 0: no record */
};

/* Counts RECORD in KEPT. */
void fr_section_count(struct fr_section_kept *kept, const struct perf_event_header *record);

/* Removes, in place, all records that are older than FROM_NS or newer than TO_NS. Returns the new length; or
   -EBADMSG if a record is not whole. In this case the contents of RET and RECORDS are undefined. */
ssize_t fr_section_filter(
	void *records, size_t len, uint64_t from_ns, uint64_t to_ns, struct fr_section_kept *ret);
