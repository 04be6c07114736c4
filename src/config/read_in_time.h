/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the configuration from a file system that may hang. */

#include "config/config.h"

/* Run fr_options_parse() and fr_config_check() on a thread of their own, into RET, which was initialised.
   Returns what they return; -EBUSY with D: it takes longer than LIMIT_NS, or an earlier read still hangs.
   Main thread. */
int fr_config_read_in_time(
	uint64_t limit_ns, struct fr_config *ret, int argc, char *argv[], struct fr_diag *d);
