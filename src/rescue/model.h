/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The process model of a crashed machine, from the tail in the crash memory (crashmem/tail.h). */

#include "base/buf.h"
#include "crashmem/crashmem.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes the side-band with which the dump of a ring in M begins, as fr_dump_model (dump/params.h) describes
   it. BEFORE_SEQ is the sequence number of the oldest frame of the ring, and LOW_WATERMARK_NS is the low
   watermark of this frame. RET_STATE gets the model just before the low watermark: records with time TIME_NS
   and event id ID. RET_SINCE gets the evicted side-band that is not older than the low watermark, sorted by
   time. *RET_WHOLE says whether the tail has all that the dump needs. The memory is not trusted. Returns 0;
   -ENOENT if there is no tail; or -ENOMEM. On failure, RET_STATE and RET_SINCE do not change. */
int fr_rescue_model(const struct fr_crashmem *m, uint64_t before_seq, uint64_t low_watermark_ns,
	uint64_t time_ns, uint64_t id, struct fr_buf *ret_state, struct fr_buf *ret_since, bool *ret_whole);
