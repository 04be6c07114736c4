/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds out which bytes of an AUX area are new. The kernel overwrites an AUX area from its start to its end,
 * again and again, and says in aux_head where it has stopped. The area may be read only while its event is
 * stopped. For some PMUs, aux_head is the number of bytes that were written in all (cs_etm). For others,
 * aux_head is a place in the area, and so does not say whether the writer has come by that place again
 * (intel_pt). docs/design/12 has the algorithm and its limits.
 *
 * A position is the number of bytes that were written before a byte. It does not wrap. The byte at position P
 * is at P & (size - 1) in the area.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes before the last head that are compared to find out whether the writer has come by. */
#define FR_AUX_REFERENCE_BYTES 4096
/* Looks that are remembered. With a look every AuxWindow= / FR_AUX_LOOKS_PER_WINDOW, this is more than one
   window. */
#define FR_AUX_MARKS 16
#define FR_AUX_LOOKS_PER_WINDOW 4

struct fr_aux_mark {
	uint64_t time_ns, position; /* at this time, the area was written up to this position */
};

struct fr_aux_window {
	uint64_t size;				/* of the area, a power of two */
	uint64_t head;				/* aux_head at the last look */
	uint64_t position;			/* the end of what was written at the last look */
	uint64_t taken;				/* what is before this position is not new */
	struct fr_aux_mark marks[FR_AUX_MARKS]; /* the newest is at (n_marks - 1) % FR_AUX_MARKS */
	uint64_t n_marks;
	uint8_t reference[FR_AUX_REFERENCE_BYTES]; /* the bytes before `head` at the last look */
};

/* A part of the area: LEN bytes, from POSITION on. */
struct fr_aux_part {
	uint64_t position;
	size_t len;
};

/* Sets W to an area of SIZE bytes (a power of two, at least 8) that has only zeros, and whose aux_head
   is 0. */
void fr_aux_window_init(struct fr_aux_window *w, uint64_t size);

/* Notes what was written up to HEAD, the value of aux_head. AREA is the memory of the AUX area. The event was
   stopped at NOW_NS, and is still stopped. Returns whether anything was written since the last look. */
bool fr_aux_window_look(struct fr_aux_window *w, const uint8_t *area, uint64_t head, uint64_t now_ns);

/* Returns the bytes that were written up to the last look, and are new: that still exist, that no earlier
   call of this function has returned, that were not written before the last look at or before SINCE_NS, and
   that were written before the first look at or after UNTIL_NS. If there is no such look, the condition cuts
   nothing. What UNTIL_NS cuts off is still new for the next call. */
struct fr_aux_part fr_aux_window_take(struct fr_aux_window *w, uint64_t since_ns, uint64_t until_ns);
/* Returns the same bytes, but the next call returns them again. */
struct fr_aux_part fr_aux_window_peek(const struct fr_aux_window *w, uint64_t since_ns, uint64_t until_ns);

/* Copies PART out of AREA to TO, in the order of positions. If the event is not stopped, the bytes that are
   not in the result of a later peek or take are not valid. */
void fr_aux_window_copy(
	const struct fr_aux_window *w, const uint8_t *area, const struct fr_aux_part *part, uint8_t *to);
