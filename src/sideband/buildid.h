/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Build-ids of the files that any process on the machine chose to map: hostile input.
 *
 * A file is opened only after it is known to be a regular one, is never mapped, and of it at most a few tens
 * of KiB are read, whatever its headers claim. Only program headers are looked at, as the kernel does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_BUILD_ID_MAX 20

/* Read the GNU build-id of the ELF file behind FD (any offset; pread is used) into RET. Its length (1 …
   FR_BUILD_ID_MAX; a longer one is cut), 0: it has none, or a negative errno: -ENOEXEC no ELF file of this
   byte order. */
int fr_build_id_read(int fd, uint8_t ret[static FR_BUILD_ID_MAX]);

/* What was found out about a file, by device, inode and time of change. Not thread-safe. */
struct fr_build_id_cache;

struct fr_build_id_cache *fr_build_id_cache_new(void); /* NULL: no memory */
struct fr_build_id_cache *fr_build_id_cache_free(struct fr_build_id_cache *c);

/* Which file it was. A number that is free again is given to another file, which has another generation. */
struct fr_file_id {
	uint64_t ino, generation; /* the latter 0: not known, or the file system has none */
};

/* The build-id of the file at DIRFD/PATH, where that is FILE (another one has taken the name otherwise). Does
   not follow a link at the end unless FOLLOW is set. As fr_build_id_read(); -ESTALE for another file. */
int fr_build_id_at(struct fr_build_id_cache *c, int dirfd, const char *path, int follow,
	const struct fr_file_id *file, uint8_t ret[static FR_BUILD_ID_MAX]);

/* Whether the file behind FD, of inode INO, is FILE. */
bool fr_file_has_id(int fd, uint64_t ino, const struct fr_file_id *file);
