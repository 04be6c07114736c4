/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * perf.data.auxiliary: a regular file in perf's pipe format. It grows by whole records, so a reader may open
 * it at any time. The recorder locks the file (flock), so two recorders cannot use one directory at the same
 * time. docs/design/30 describes the lock and the name. Only one thread at a time may call these functions.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_AUXFILE_NAME "perf.data.auxiliary"

struct fr_auxfile;

/* Create and lock perf.data.auxiliary in the directory DIRFD. The file begins with the LEN bytes at HEAD.
   DIRFD is borrowed until the file is closed. If there is an old file, it is not empty, and the directory has
   a perf.data.sample.*, the old file is renamed to perf.data.auxiliary.STAMP (STAMP: the time of its last
   change). Any other old file is removed. Also calls fr_auxfile_remove_old(). Returns 0; -EBUSY with D if
   another process has locked the old file; or another negative errno. */
int fr_auxfile_open(int dirfd, const void *head, size_t len, struct fr_auxfile **ret, struct fr_diag *d);

/* Open and lock the existing file to continue it. Before the first append, the caller reads the file and
   truncates it to whole records. Also calls fr_auxfile_remove_old(). Returns 0; -ENOENT if there is no file;
   -EBUSY with D if another process has locked it; or another negative errno. */
int fr_auxfile_adopt(int dirfd, struct fr_auxfile **ret, struct fr_diag *d);
/* Replace an adopted file that belongs to another recording: rename or remove it as fr_auxfile_open() does,
   and create a file that begins with the LEN bytes at HEAD. Returns 0; or a negative errno, and then A still
   has the old file open, which may already have the name perf.data.auxiliary.STAMP. */
int fr_auxfile_replace(struct fr_auxfile *a, const void *head, size_t len);
/* Returns the descriptor of the file; borrowed. */
int fr_auxfile_fd(const struct fr_auxfile *a);
/* Truncate the file to its first BYTES bytes. Returns 0; or a negative errno, and then the file still has its
   further bytes. The next fr_auxfile_append() overwrites these. */
int fr_auxfile_truncate(struct fr_auxfile *a, uint64_t bytes);

/* Append the LEN bytes at DATA, which must be whole records. Returns 0; or a negative errno, and then
   fr_auxfile_bytes() does not change. */
int fr_auxfile_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_bytes(const struct fr_auxfile *a);

/* Returns true if the directory still exists, and its perf.data.auxiliary is missing or is another file than
   ours. The file of the next compaction then gets the name. */
bool fr_auxfile_is_displaced(const struct fr_auxfile *a);

/* Syncs and closes the file. If there is a next file (see below), removes it. NULL-safe; returns NULL. */
struct fr_auxfile *fr_auxfile_close(struct fr_auxfile *a);

/* Remove each perf.data.auxiliary.STAMP (the auxiliary file of an earlier recording) if that recording has no
   perf.data.sample.* any more. Call it only while this process has the lock of perf.data.auxiliary. */
void fr_auxfile_remove_old(int dirfd);

/*
 * The next file replaces the present file at the end of a compaction (auxfile_next.c). The caller creates the
 * next file, appends to it, calls fr_auxfile_next_follow(), and then calls fr_auxfile_next_commit() again and
 * again until it returns 1. If one of these functions returns a negative errno, the caller calls
 * fr_auxfile_next_abandon().
 */
int fr_auxfile_next_create(struct fr_auxfile *a, const void *head, size_t len);
int fr_auxfile_next_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_next_bytes(const struct fr_auxfile *a);
/* From now on fr_auxfile_append() writes to both files. (fr_auxfile_next_commit() reports a failed write to
   the next file.) Starts to sync the next file. Waits for the disk only if the kernel has no asynchronous
   fsync. Returns 0 or a negative errno. */
int fr_auxfile_next_follow(struct fr_auxfile *a);
/* If the next file is synced, rename it to perf.data.auxiliary and make it the present file. If a third file
   (not the present one) has this name now, the third file is renamed or removed as in fr_auxfile_open().
   Returns 1 if all this is done; 0 if the caller has to call it again later, because the sync is not over
   yet, or another process has just changed the file with this name; -EBUSY if another process has locked the
   third file; or another negative errno. */
int fr_auxfile_next_commit(struct fr_auxfile *a);
void fr_auxfile_next_abandon(struct fr_auxfile *a); /* does nothing if there is no next file */
