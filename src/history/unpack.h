/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads sections of frames: decompress one, walk its records, cut it to a window.
 *
 * Sections may come from a damaged image. Every length is checked: nothing outside of the section is read,
 * and nothing outside of the buffer is written. One thread at a time uses an fr_unpack.
 */

#include "history/frame.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A context for many decompressions. 0 or -ENOMEM. */
struct fr_unpack;
int fr_unpack_new(struct fr_unpack **ret);
struct fr_unpack *fr_unpack_free(struct fr_unpack *u);
static inline void fr_unpackp(struct fr_unpack **u)
{
	fr_unpack_free(*u);
}
#define _cleanup_unpack_ _cleanup_(fr_unpackp)

/* Decompress LEN bytes to DST, which has CAP bytes: fr_history_section_max() is enough for any section of a
   ring. Returns the raw length (0 for LEN 0), or -EBADMSG if it is not valid zstd or larger than CAP. */
ssize_t fr_section_decompress(struct fr_unpack *u, const void *zstd, size_t len, void *dst, size_t cap);

/* Walks the records of a raw section. */
struct fr_section_iter {
	const uint8_t *at, *end;
};
static inline struct fr_section_iter fr_section_iter(const void *records, size_t len)
{
	return (struct fr_section_iter){records, (const uint8_t *)records + len};
}

/* The next record. NULL: the end, if it->at == it->end, or else bytes that are not a whole record. */
const struct perf_event_header *fr_section_next(struct fr_section_iter *it);

/* Counts records, without FINISHED_ROUND. Without records, the smallest and the largest time are 0. */
struct fr_section_kept {
	uint32_t records;
	uint64_t first_ns, last_ns;
};

/* Count RECORD, too. */
void fr_section_count(struct fr_section_kept *kept, const struct perf_event_header *record);

/* Remove, in place, all records with a time outside of FROM … TO (inclusive), and FINISHED_ROUND if
   DROP_ROUNDS. What a round promises stays true without some records. Returns the new length; -EBADMSG: there
   is a record that is not whole, and RET and RECORDS are undefined. */
ssize_t fr_section_filter(void *records, size_t len, uint64_t from_ns, uint64_t to_ns, bool drop_rounds,
	struct fr_section_kept *ret);
