/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of an upload that the store has accepted, in a file of the state. It is for stores that cannot
   list the parts of an upload. A part that is missing here is only sent again. */

#include "store/s3.h"

/* Adds the part P of the upload UPLOAD to the file NAME in DIRFD. Returns 0 or a negative errno. */
int fr_parts_add(int dirfd, const char *name, const char *upload, const struct fr_store_part *p);
/* Reads the parts of UPLOAD, at most MAX, into RET. Lines that make no sense, and those of other uploads, are
   ignored; if a part is there twice, its last line counts. Returns 0, also if there is no file; or a negative
   errno. */
int fr_parts_read(int dirfd, const char *name, const char *upload, struct fr_store_part *ret, size_t max,
	size_t *ret_n);
