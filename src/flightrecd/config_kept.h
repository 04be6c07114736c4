/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A configuration as one instance leaves it for the next, which goes on with it where what it finds in the
 * files cannot be used: the command line, and what the files said.
 *
 *   u32 number of arguments │ each with its NUL │ text of the files
 */

#include "base/buf.h"
#include "flightrecd/config.h"

/* Append C, which ARGC and ARGV and the files made. 0 or -ENOMEM. */
int fr_config_keep(const struct fr_config *c, int argc, char *const argv[], struct fr_buf *ret);
/* The inverse, of bytes that may be anything, into C, which is fresh from init(). 0; -EBADMSG; or as
   fr_options_parse(). Main thread. */
int fr_config_restore(struct fr_config *c, const struct fr_buf *kept, struct fr_diag *d);
