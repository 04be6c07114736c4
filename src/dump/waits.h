/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Used in dump/ only: the waits that have not ended. A sample of flightrec:offcpu is made when a wait ends,
 * so a task that still waits has none, and often it is this task that the dump is made for. So the recorder
 * asks the kernel for these waits, and the dump has a sample of the event "flightrec:waiting" for each. All
 * of them have the time of the end of the window. docs/design/13 has the reasons.
 */

#include "base/buf.h"
#include "perfdata/session.h"

struct fr_waits {
	struct fr_buf records; /* samples of the event "flightrec:waiting", with equal times */
	uint64_t time_ns;      /* of all records */
	uint64_t n;
};

/* Makes the records of the waits FROM: samples of flightrec:offcpu, each with the duration up to its time. In
   RET, all waits end at TO_NS, or at the time of the last sample if this is earlier. Waits that began after
   that are left out. If there are waits, adds the event to S as its last event. Returns 0; -EBADMSG if FROM
   is not valid, or S has no event flightrec:offcpu; or -ENOMEM. */
int fr_waits_init(struct fr_waits *ret, struct fr_session *s, const struct fr_buf *from, uint64_t to_ns);
void fr_waits_deinit(struct fr_waits *w);
