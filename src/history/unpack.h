/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The reader's side of a frame: open a zstd section, walk the records in it, cut it to a window of time.
 *
 * Sections may come from a damaged image: every length is checked, nothing is read past the section, nothing
 * written past the buffer. An fr_unpack belongs to one thread at a time.
 */

#include "history/history.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A reusable decompression context. 0 or -ENOMEM. */
struct fr_unpack;
int fr_unpack_new(struct fr_unpack **ret);
struct fr_unpack *fr_unpack_free(struct fr_unpack *u);
static inline void fr_unpackp(struct fr_unpack **u)
{
	fr_unpack_free(*u);
}
#define _cleanup_unpack_ _cleanup_(fr_unpackp)

/* Decompress the section ZSTD of LEN bytes into DST, which has room for CAP (fr_history_section_max() is
   enough for any section of that ring). Returns its raw length (0 for LEN 0), or -EBADMSG where it is not
   whole zstd or larger than CAP. */
ssize_t fr_section_decompress(struct fr_unpack *u, const void *zstd, size_t len, void *dst, size_t cap);

/* Walks the records of a raw section. */
struct fr_section_iter {
	const uint8_t *at, *end;
};
static inline struct fr_section_iter fr_section_iter(const void *records, size_t len)
{
	return (struct fr_section_iter){records, (const uint8_t *)records + len};
}

/* The next whole record; NULL at the end, or where what follows is no whole record. The walk was complete
   where it->at == it->end afterwards. */
const struct perf_event_header *fr_section_next(struct fr_section_iter *it);

/* What a filter kept. Times are the smallest and the largest, 0 where nothing was kept; RECORDS does not
   count FINISHED_ROUNDs. */
struct fr_section_kept {
	uint32_t records;
	uint64_t first_ns, last_ns;
};

/* Keep, in place and in order, the records of RECORDS whose time lies in FROM … TO, inclusive.
   FINISHED_ROUND, which has no time, stays unless DROP_ROUNDS. (Taking records away never makes a round
   untrue.) Returns the new length, or -EBADMSG where the section is not all whole records: then RET and the
   bytes before the bad place are undefined. */
ssize_t fr_section_filter(void *records, size_t len, uint64_t from_ns, uint64_t to_ns, bool drop_rounds,
	struct fr_section_kept *ret);
