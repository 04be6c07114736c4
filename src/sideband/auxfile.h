/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * perf.data.auxiliary: a pipe-format stream in a regular file, that grows by whole records and may be read at
 * any moment. It is locked (flock) as long as it is open: two recorders cannot share a directory. One thread.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_AUXFILE_NAME "perf.data.auxiliary"

struct fr_auxfile;

/* Make the file in DIRFD (borrowed until it is closed), beginning with HEAD. The file of a run before is
   renamed to perf.data.auxiliary.STAMP, of its last change, while a perf.data.sample.* stands in the
   directory, else removed; and fr_auxfile_tidy(). 0; -EBUSY: another process holds it, D names it; or a
   negative errno. */
int fr_auxfile_open(int dirfd, const void *head, size_t len, struct fr_auxfile **ret, struct fr_diag *d);

/* Go on with the file that is there: locked, and to be read and cut by the caller before anything is
   appended. Its head is that of its first run. 0; -ENOENT: there is none; -EBUSY as above; or a negative
   errno with D. */
int fr_auxfile_adopt(int dirfd, struct fr_auxfile **ret, struct fr_diag *d);
/* What was adopted is of somebody else: it is put away as open() does, and A is a new file that begins with
   HEAD. 0; or a negative errno, and A is the file that it was, perhaps put away. */
int fr_auxfile_begin_anew(struct fr_auxfile *a, const void *head, size_t len);
/* A descriptor of it, borrowed. */
int fr_auxfile_fd(const struct fr_auxfile *a);
/* What stands behind BYTES goes. 0 or a negative errno; appends overwrite it then. */
int fr_auxfile_cut(struct fr_auxfile *a, uint64_t bytes);

/* All of DATA, whole records, or nothing: what a failed write left is cut off. 0 or a negative errno. */
int fr_auxfile_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_bytes(const struct fr_auxfile *a);

/* Its directory is there, but its name is another file's, or nobody's: the directory is another one than it
   was, or somebody removed the file. The next file heals that. */
bool fr_auxfile_is_astray(const struct fr_auxfile *a);

/* Syncs and closes, and removes a file that was to be the next. NULL-safe; returns NULL. */
struct fr_auxfile *fr_auxfile_close(struct fr_auxfile *a);

/* Remove what nobody needs any more: perf.data.auxiliary.STAMP of earlier runs from whose time no sample file
   is left. Only for who holds the directory's perf.data.auxiliary. */
void fr_auxfile_tidy(int dirfd);

/*
 * The file that is to take its place (auxfile_next.c): made under a temporary name and locked; written to;
 * then followed by all that is appended to the present one; then, once it is on the disk, renamed over it.
 * All return a negative errno on failure, and then only abandon() is left.
 */
int fr_auxfile_next_create(struct fr_auxfile *a, const void *head, size_t len);
int fr_auxfile_next_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_next_bytes(const struct fr_auxfile *a);
/* From here on fr_auxfile_append() goes to both, and the disk is at work; does not wait for it where the
   kernel can do without. */
int fr_auxfile_next_follow(struct fr_auxfile *a);
/* 0: the disk is not done yet; 1: the new file has the name, and the old one is gone. Where that was astray,
   a file that has its name now is put away; -EBUSY: another process holds it. */
int fr_auxfile_next_commit(struct fr_auxfile *a);
void fr_auxfile_next_abandon(struct fr_auxfile *a); /* no next one: nothing */
