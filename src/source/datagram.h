/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What an application sends (include/flightrec/trigger.h has the keys): lines KEY=VALUE, as in sd_notify(3).
   Anyone who may write to the socket writes it. */

#include "source/cause.h"

#include <stddef.h>
#include <stdint.h>

struct fr_datagram {
	char trigger[FR_TRIGGER_NAME_SIZE]; /* "" where it says none */
	char reason[FR_CAUSE_TEXT_SIZE];    /* likewise; cut to fit, between characters */
	uint64_t value, threshold;
	enum fr_unit_of_cause unit;
	uint64_t time_ns; /* 0: it says none */
	pid_t tid;	  /* as it says; 0: nothing */
};

/* All texts become UTF-8 without control characters, with '?' for what is not in REASON. Keys that are not
   known are passed over; of a key that comes again, the last counts. 0, or -EINVAL: what is no line of that
   kind, no number, no unit, or no trigger's name (no text, or too long); and where there is no line at all.
 */
int fr_datagram_parse(const void *data, size_t len, struct fr_datagram *ret);
