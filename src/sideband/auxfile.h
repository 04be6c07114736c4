/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * perf.data.auxiliary: a stream in perf's pipe format in a regular file. It grows by whole records, and
 * anybody may read it at any moment. An open file is locked (flock), so two recorders cannot share a
 * directory. docs/design/30 describes the lock and the name. One thread.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_AUXFILE_NAME "perf.data.auxiliary"

struct fr_auxfile;

/* Create the file in DIRFD (borrowed until the file is closed); it begins with HEAD. An old file becomes
   perf.data.auxiliary.STAMP if the directory has a perf.data.sample.*, else it is removed. Calls
   fr_auxfile_remove_old(). 0; -EBUSY: another process has the lock, and D names it; or a negative errno. */
int fr_auxfile_open(int dirfd, const void *head, size_t len, struct fr_auxfile **ret, struct fr_diag *d);

/* Open and lock the existing file to continue it. The caller reads it and truncates it to whole records
   before it appends. 0; -ENOENT: there is none; -EBUSY as above; or a negative errno with D. */
int fr_auxfile_adopt(int dirfd, struct fr_auxfile **ret, struct fr_diag *d);
/* Put the adopted file of another recording away as fr_auxfile_open() does, and create one that begins with
   HEAD. 0; or a negative errno, and A is still the old file, perhaps under its other name. */
int fr_auxfile_replace(struct fr_auxfile *a, const void *head, size_t len);
/* Its descriptor, borrowed. */
int fr_auxfile_fd(const struct fr_auxfile *a);
/* Remove what is behind BYTES. 0, or a negative errno and the next append overwrites it. */
int fr_auxfile_truncate(struct fr_auxfile *a, uint64_t bytes);

/* Append DATA, which is whole records. 0, or a negative errno and the file is as before. */
int fr_auxfile_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_bytes(const struct fr_auxfile *a);

/* The directory exists, but its perf.data.auxiliary is missing or is another file: somebody removed it, or
   the directory is another one. The next file repairs that. */
bool fr_auxfile_is_displaced(const struct fr_auxfile *a);

/* Syncs and closes the file, and removes an unfinished next file. NULL-safe; returns NULL. */
struct fr_auxfile *fr_auxfile_close(struct fr_auxfile *a);

/* Remove each perf.data.auxiliary.STAMP of an earlier run of which no sample file is left. The caller has the
   lock of the directory's perf.data.auxiliary. */
void fr_auxfile_remove_old(int dirfd);

/*
 * The next file replaces the present one (auxfile_next.c): create, append, then follow, then commit until it
 * returns 1. After a negative errno the caller abandons it.
 */
int fr_auxfile_next_create(struct fr_auxfile *a, const void *head, size_t len);
int fr_auxfile_next_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_next_bytes(const struct fr_auxfile *a);
/* From now on fr_auxfile_append() writes to both files. Starts to sync the next file, and waits for the disk
   only if the kernel has no asynchronous fsync. */
int fr_auxfile_next_follow(struct fr_auxfile *a);
/* 0: the disk is still busy; 1: the next file has the name and is the present one. If the present file was
   displaced, the file that has the name is put away; -EBUSY: another process has its lock. */
int fr_auxfile_next_commit(struct fr_auxfile *a);
void fr_auxfile_next_abandon(struct fr_auxfile *a); /* does nothing if there is no next file */
