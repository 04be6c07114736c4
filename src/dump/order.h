/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Used in dump/ only: the order in which a dump has the frames of several rings, and the places of its
 * FINISHED_ROUNDs. docs/design/20 has the promise that a FINISHED_ROUND makes to readers, and shows that it
 * is kept here.
 *
 * The frames come by the time of their newest record. The frame of a slow ring can span minutes, and no
 * FINISHED_ROUND is allowed while its old records are not written. So if many bytes of other rings have been
 * written since the last FINISHED_ROUND, the frame is written in pieces.
 *
 * Only the dumper thread calls these functions.
 */

#include "history/rings.h"

#include <stdbool.h>
#include <stdint.h>

struct fr_order_source {
	struct fr_snapshot *snapshot;
	struct fr_frame frame; /* the next frame, or the frame of which a piece was written */
	bool has_frame, begun;
	uint64_t done_ns;     /* begun: the records up to this time were written */
	uint64_t next_low_ns; /* begun: low watermark of the frame behind `frame`; UINT64_MAX: none */
};

struct fr_order {
	struct fr_order_source sources[FR_RINGS_MAX + 1];
	unsigned n, sideband;
	bool no_rounds;
	uint64_t newest_ns;   /* time of the newest record that was written */
	uint64_t promised_ns; /* newest_ns at the last FINISHED_ROUND */
	uint64_t others_ns;   /* oldest record that will come from elsewhere; UINT64_MAX: none */
	uint64_t waiting;     /* bytes that were written since the last FINISHED_ROUND */
	uint64_t waiting_max; /* a slow ring's frame is written in pieces if more bytes wait; tests change it
			       */
};

/* The records of a frame with the times FROM_NS to TO_NS. FRAME is valid until the next call of
   fr_order_next(). */
struct fr_piece {
	const struct fr_frame *frame;
	unsigned ring; /* the index of its snapshot in struct fr_snapshots */
	bool sideband; /* with the side-band; false: another ring has it */
	uint64_t from_ns, to_ns;
	uint64_t last_ns; /* no record of the piece is newer */
	bool round;	  /* a FINISHED_ROUND comes before the piece */
};

/* The order of the frames of S, which is borrowed. If NO_ROUNDS is true, there is no FINISHED_ROUND. */
void fr_order_init(struct fr_order *o, const struct fr_snapshots *s, bool no_rounds);
/* Says that the dump has a record with the time NS that does not come from the frames. */
void fr_order_add_record(struct fr_order *o, uint64_t ns);
/* Says that the dump has a FINISHED_ROUND here, before the first frame. */
void fr_order_add_round(struct fr_order *o);
/* Says that records that do not come from the frames will be written with the following pieces, the oldest
   with the time NS; UINT64_MAX: there are none. */
void fr_order_expect(struct fr_order *o, uint64_t ns);
/* Returns 1 and sets RET to the next piece; or 0 if all is written. */
int fr_order_next(struct fr_order *o, struct fr_piece *ret);
