/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the configuration from a file system that can hang. */

#include "config/config.h"

/* Runs fr_options_parse() and fr_config_check() on another thread, and replaces RET by the new configuration.
   Waits for at most LIMIT_NS. Only one thread at a time may call this function. Returns the result of
   fr_options_parse() and fr_config_check(); -EBUSY, with a message in D, if LIMIT_NS have passed or if an
   earlier read still hangs; or another negative errno. If these two functions have not run to their end, RET
   does not change. */
int fr_config_read_in_time(
	uint64_t limit_ns, struct fr_config *ret, int argc, char *argv[], struct fr_diag *d);
