/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The configuration from the disk, which may hang. */

#include "flightrecd/config.h"

/* fr_options_parse() and fr_config_check() on a thread of their own, into RET, which was initialised. Returns
   as they do; -EBUSY with D: it takes longer than LIMIT_NS, or one before still does. Main thread. */
int fr_config_read_within(
	uint64_t limit_ns, struct fr_config *ret, int argc, char *argv[], struct fr_diag *d);
