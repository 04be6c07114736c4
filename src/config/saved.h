/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Saves the configuration for the next instance. That instance uses it if the files of the configuration
 * cannot be used. The format is:
 *
 *   u32 number of arguments │ each argument with its NUL │ text of the files
 */

#include "base/buf.h"
#include "config/config.h"

/* Append C, which was parsed from ARGC and ARGV, to RET. Returns 0 or -ENOMEM. */
int fr_config_save(const struct fr_config *c, int argc, char *const argv[], struct fr_buf *ret);
/* Decode SAVED, which may be any bytes, into C, on which only fr_config_init() has been called. Returns 0;
   -EBADMSG: SAVED is not a saved configuration; or an error of fr_options_parse(). */
int fr_config_restore(struct fr_config *c, const struct fr_buf *saved, struct fr_diag *d);
