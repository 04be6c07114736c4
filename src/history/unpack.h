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

/* Decompresses LEN bytes to DST, which has room for CAP bytes. A CAP of fr_history_section_max() is enough
   for any section of a ring. Returns the raw length (0 if LEN is 0); or -EBADMSG if the section is not valid
   zstd, or its raw length is larger than CAP. */
ssize_t fr_section_decompress(struct fr_unpack *u, const void *zstd, size_t len, void *dst, size_t cap);

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
