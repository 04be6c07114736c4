/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Saves the configuration for the next instance, which uses it if it cannot use its own files. The format is
 * the command line and the text of the files:
 *
 *   u32 number of arguments │ each with its NUL │ text of the files
 */

#include "base/buf.h"
#include "config/config.h"

/* Append C, which was parsed from ARGC and ARGV, to RET. 0 or -ENOMEM. */
int fr_config_save(const struct fr_config *c, int argc, char *const argv[], struct fr_buf *ret);
/* Decode SAVED, which need not be valid, into C, which is fresh from init(). 0; -EBADMSG: it is not a saved
   configuration; or an error of fr_options_parse(). */
int fr_config_restore(struct fr_config *c, const struct fr_buf *saved, struct fr_diag *d);
