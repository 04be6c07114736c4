/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * perf.data.auxiliary: a regular file in perf's pipe format. It grows by whole records, so a reader may open
 * it at any moment. An open file is locked (flock), so two recorders cannot share a directory. docs/design/30
 * describes the lock and the name. One thread.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_AUXFILE_NAME "perf.data.auxiliary"

struct fr_auxfile;

/* Create and lock the file in DIRFD, which is borrowed until the file is closed. The file begins with HEAD.
   An old file becomes perf.data.auxiliary.STAMP if the directory has a perf.data.sample.*, else it is
   removed. Calls fr_auxfile_remove_old(). Returns 0; -EBUSY: another process has the lock, and D names it; or
   a negative errno. */
int fr_auxfile_open(int dirfd, const void *head, size_t len, struct fr_auxfile **ret, struct fr_diag *d);

/* Open and lock the existing file to continue it. The caller reads it and truncates it to whole records
   before it appends. Returns 0; -ENOENT: there is no file; -EBUSY: another process has the lock; or a
   negative errno with D. */
int fr_auxfile_adopt(int dirfd, struct fr_auxfile **ret, struct fr_diag *d);
/* Replace an adopted file that belongs to another recording: keep or remove it as fr_auxfile_open() does, and
   create a file that begins with HEAD. Returns 0; or a negative errno: A is still the old file, perhaps under
   its other name. */
int fr_auxfile_replace(struct fr_auxfile *a, const void *head, size_t len);
/* Returns the descriptor, borrowed. */
int fr_auxfile_fd(const struct fr_auxfile *a);
/* Remove the bytes behind the first BYTES. Returns 0; or a negative errno: the next append overwrites
   them. */
int fr_auxfile_truncate(struct fr_auxfile *a, uint64_t bytes);

/* Append DATA, which is whole records. Returns 0; or a negative errno: the file does not change. */
int fr_auxfile_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_bytes(const struct fr_auxfile *a);

/* Returns whether the directory exists, but its perf.data.auxiliary is missing or is another file. The next
   compaction repairs that. */
bool fr_auxfile_is_displaced(const struct fr_auxfile *a);

/* Syncs and closes the file, and removes an unfinished next file. NULL-safe; returns NULL. */
struct fr_auxfile *fr_auxfile_close(struct fr_auxfile *a);

/* Remove each old perf.data.auxiliary.STAMP whose recording has no sample file any more. The caller has the
   lock of perf.data.auxiliary. */
void fr_auxfile_remove_old(int dirfd);

/*
 * The next file replaces the present one (auxfile_next.c). The caller creates it, appends to it, lets it
 * follow the present file, and commits it until that returns 1. After a negative errno the caller abandons
 * the next file.
 */
int fr_auxfile_next_create(struct fr_auxfile *a, const void *head, size_t len);
int fr_auxfile_next_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_next_bytes(const struct fr_auxfile *a);
/* From now on fr_auxfile_append() writes to both files. Starts to sync the next file, and waits for the disk
   only if the kernel has no asynchronous fsync. */
int fr_auxfile_next_follow(struct fr_auxfile *a);
/* Make the next file the present one when the disk has it. If another file has the name meanwhile, it is kept
   or removed as in fr_auxfile_open(). Returns 0: the disk is still busy; 1: done; -EBUSY: another process has
   the lock; or another negative errno. */
int fr_auxfile_next_commit(struct fr_auxfile *a);
void fr_auxfile_next_abandon(struct fr_auxfile *a); /* does nothing if there is no next file */
