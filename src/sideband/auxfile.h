/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * perf.data.auxiliary: a regular file in perf's pipe format, with all side-band (records that are not
 * samples). It grows by whole records, so a reader can open it at any time. The recorder locks the file
 * (flock), so two recorders cannot use one directory at the same time. docs/design/30 describes the lock and
 * the name. Only one thread at a time may call these functions.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_AUXFILE_NAME "perf.data.auxiliary"

struct fr_auxfile;

/* Creates and locks perf.data.auxiliary in the directory DIRFD. The file begins with the LEN bytes at HEAD.
   DIRFD is borrowed until the file is closed. An old file that is not empty is renamed to
   perf.data.auxiliary.STAMP (STAMP: the time of its last change) if the directory has a perf.data.sample.*.
   Any other old file is removed. Also calls fr_auxfile_remove_old(). Returns 0; -EBUSY, with a message in D,
   if another process has locked the old file; or another negative errno. */
int fr_auxfile_open(int dirfd, const void *head, size_t len, struct fr_auxfile **ret, struct fr_diag *d);

/* Opens and locks the existing perf.data.auxiliary to continue it. Before the first append, the caller must
   read the file and truncate it to whole records. Also calls fr_auxfile_remove_old(). Returns 0; -ENOENT if
   there is no file; -EBUSY, with a message in D, if another process has locked the file; or another negative
   errno. */
int fr_auxfile_adopt(int dirfd, struct fr_auxfile **ret, struct fr_diag *d);
/* Replaces an adopted file that belongs to another recording: renames or removes it as fr_auxfile_open()
   does, and creates a file that begins with the LEN bytes at HEAD. Returns 0 or a negative errno. On failure,
   A still has the old file open. The old file may then have the name perf.data.auxiliary.STAMP already. */
int fr_auxfile_replace(struct fr_auxfile *a, const void *head, size_t len);
/* Returns the descriptor of the file; borrowed. */
int fr_auxfile_fd(const struct fr_auxfile *a);
/* Truncates the file to its first BYTES bytes. Returns 0 or a negative errno. On failure, the file keeps its
   other bytes, and the next fr_auxfile_append() overwrites them. */
int fr_auxfile_truncate(struct fr_auxfile *a, uint64_t bytes);

/* Appends the LEN bytes at DATA, which must be whole records. Returns 0 or a negative errno. On failure,
   fr_auxfile_bytes() does not change. */
int fr_auxfile_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_bytes(const struct fr_auxfile *a);

/* Returns whether the directory has no perf.data.auxiliary, or its perf.data.auxiliary is not the file of A.
   Returns false if the directory was removed. If the function returns true, a compaction is due, because its
   new file gets the name. */
bool fr_auxfile_is_displaced(const struct fr_auxfile *a);

/* Syncs and closes the file. If there is a next file (see below), removes it. NULL-safe; returns NULL. */
struct fr_auxfile *fr_auxfile_close(struct fr_auxfile *a);

/* Returns whether a dump with the time DUMP_NS can need the auxiliary file with the time AUXILIARY_NS.
   PREVIOUS_NS is the time of the auxiliary file before it; 0: there is none. */
bool fr_auxfile_is_needed_by(uint64_t dump_ns, uint64_t previous_ns, uint64_t auxiliary_ns);

/* Removes each perf.data.auxiliary.STAMP (the auxiliary file of an earlier recording) if that recording has
   no perf.data.sample.* any more. Call this function only while this process has the lock of
   perf.data.auxiliary. */
void fr_auxfile_remove_old(int dirfd);

/*
 * A compaction writes a second file, the next file, which replaces the current file at the end
 * (auxfile_next.c). The caller creates the next file, appends to it, calls fr_auxfile_next_follow(), and then
 * calls fr_auxfile_next_commit() until it returns 1. If one of these functions returns a negative errno, the
 * caller calls fr_auxfile_next_abandon().
 */
int fr_auxfile_next_create(struct fr_auxfile *a, const void *head, size_t len);
int fr_auxfile_next_append(struct fr_auxfile *a, const void *data, size_t len);
uint64_t fr_auxfile_next_bytes(const struct fr_auxfile *a);
/* After this call, fr_auxfile_append() writes to the current file and to the next file.
   (fr_auxfile_next_commit() reports a failed write to the next file.) The call also starts to sync the next
   file. It waits for the disk only if the kernel has no asynchronous fsync. Returns 0 or a negative errno. */
int fr_auxfile_next_follow(struct fr_auxfile *a);
/* If the next file is synced, renames it to perf.data.auxiliary and makes it the current file. If another
   process has put a third file at this name, the third file is renamed or removed as fr_auxfile_open() does
   it with an old file. Returns 1 if the next file has become the current file; 0 if the caller must call the
   function again later, because the sync is not over yet, or another process has just changed the file with
   this name; -EBUSY if another process has locked the third file; or another negative errno. */
int fr_auxfile_next_commit(struct fr_auxfile *a);
void fr_auxfile_next_abandon(struct fr_auxfile *a); /* does nothing if there is no next file */
