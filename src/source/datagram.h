/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A datagram of an application has lines KEY=VALUE, as in sd_notify(3). include/flightrec/trigger.h lists the
   keys. Any user who is allowed to write to the socket can send any bytes. */

#include "source/cause.h"

#include <stddef.h>
#include <stdint.h>

struct fr_datagram {
	char trigger[FR_TRIGGER_NAME_SIZE]; /* "": not given */
	char reason[FR_CAUSE_TEXT_SIZE];    /* "": not given; a long reason is truncated between
					       two characters */
	uint64_t value, threshold;
	enum fr_unit_of_cause unit;
	uint64_t time_ns; /* 0: not given */
	pid_t tid;	  /* a claim of the sender, not checked here; 0: not given */
};

/* Parses LEN bytes. All texts in RET are UTF-8 without control characters; the reason has '?' in place of all
   other bytes. Unknown keys are ignored. If several lines have the same key, the last of these lines counts.
   Returns 0; or -EINVAL if there is no line, if a line has no KEY=, or if a number, a unit or the trigger's
   name is invalid. Do not use RET after a failure. */
int fr_datagram_parse(const void *data, size_t len, struct fr_datagram *ret);
