/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A private folder for temporary files. A small process of its own removes the folder when this process ends,
 * also if a signal kills it or it crashes. The process and this one know of each other's end by a pipe
 * between them.
 */

#include "base/diag.h"

struct fr_temporary;

/* Makes a folder in $TMPDIR, or else in /var/tmp, that only this user can use. Call it while the process has
   one thread. Returns 0; or a negative errno, with a message in D. */
int fr_temporary_new(struct fr_temporary **ret, struct fr_diag *d);
/* Waits until the folder is removed. Accepts NULL; returns NULL. */
struct fr_temporary *fr_temporary_free(struct fr_temporary *t);
const char *fr_temporary_path(const struct fr_temporary *t);
