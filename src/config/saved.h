/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A configuration as one instance leaves it to the next: the command line, and the text of the files. The
 * next instance uses it if its own files cannot be used.
 *
 *   u32 number of arguments │ each with its NUL │ text of the files
 */

#include "base/buf.h"
#include "config/config.h"

/* Append C, which was read with ARGC and ARGV. 0 or -ENOMEM. */
int fr_config_save(const struct fr_config *c, int argc, char *const argv[], struct fr_buf *ret);
/* Decode SAVED, bytes that may be anything, into C, which is fresh from init(). 0; -EBADMSG; or as
   fr_options_parse(). */
int fr_config_restore(struct fr_config *c, const struct fr_buf *saved, struct fr_diag *d);
