/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Build-ids of files that processes have mapped. These files are hostile input, because any process can map
 * any file. So only regular files are opened, no file is mapped, and at most 140 KiB of a file are read,
 * whatever its ELF headers say. As in the kernel, only the note segments (PT_NOTE) are searched for a
 * build-id, not the sections. These functions may wait for a disk.
 */

#include <stdbool.h>
#include <stdint.h>

#define FR_BUILD_ID_MAX 20

/* Read the GNU build-id of the ELF file FD. The file offset does not move. Returns its length, 1 …
   FR_BUILD_ID_MAX (a longer build-id is truncated); 0: the file has no build-id; -ENOEXEC: FD is not an ELF
   file of this byte order; or another negative errno. */
int fr_build_id_read(int fd, uint8_t ret[static FR_BUILD_ID_MAX]);

/* A cache of known build-ids, by device, inode and mtime. Not thread-safe. */
struct fr_build_id_cache;

/* Returns NULL if there is no memory. */
struct fr_build_id_cache *fr_build_id_cache_new(void);
struct fr_build_id_cache *fr_build_id_cache_free(struct fr_build_id_cache *c);

/* Identifies a file. A file system may use an inode number again for another file, which then has another
   generation. */
struct fr_file_id {
	uint64_t ino, generation; /* generation 0: not known, or the file system has no generations */
};

/* Read the build-id of the file DIRFD/PATH, or take it from C if C knows it. FOLLOW: PATH may be a symbolic
   link. Returns as fr_build_id_read(); or -ESTALE if the file at PATH is not FILE. */
int fr_build_id_at(struct fr_build_id_cache *c, int dirfd, const char *path, bool follow,
	const struct fr_file_id *file, uint8_t ret[static FR_BUILD_ID_MAX]);

/* Returns whether the file FD, whose inode is INO, is FILE. */
bool fr_file_has_id(int fd, uint64_t ino, const struct fr_file_id *file);
