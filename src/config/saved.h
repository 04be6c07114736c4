/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Saves the configuration for the next instance. The next instance uses the saved configuration if the
 * configuration in the files cannot be used. The format is:
 *
 *   u32 number of arguments │ each argument with its NUL │ text of the files
 */

#include "base/buf.h"
#include "config/config.h"

/* Appends the saved form of C, which was parsed from ARGC and ARGV, to RET. Returns 0 or -ENOMEM. */
int fr_config_save(const struct fr_config *c, int argc, char *const argv[], struct fr_buf *ret);
/* Decodes SAVED into C. SAVED is not trusted: it can have any content. The caller has set C by
   fr_config_init() and has not changed C since. Returns 0; -EBADMSG if SAVED is not a saved configuration; or
   an error of fr_options_parse(). */
int fr_config_restore(struct fr_config *c, const struct fr_buf *saved, struct fr_diag *d);
