/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Build-ids of files that processes have mapped. These files are hostile input, because any process can map
 * any file. So flightrec opens only regular files, reads them and does not map them, and reads at most 140
 * KiB of each, whatever its ELF headers say. As in the kernel, only the note segments (PT_NOTE) are searched
 * for a build-id, not the sections. These functions can wait for a disk.
 */

#include <stdbool.h>
#include <stdint.h>

#define FR_BUILD_ID_MAX 20

/* Reads the GNU build-id of the ELF file FD. The file offset of FD does not change. Returns the length of the
   build-id, 1 … FR_BUILD_ID_MAX (a longer build-id is truncated); 0: the file has no build-id; -ENOEXEC: FD
   is not an ELF file of this byte order; or another negative errno. */
int fr_build_id_read(int fd, uint8_t ret[static FR_BUILD_ID_MAX]);

/* A cache of known build-ids, by device, inode, generation and mtime of the file. Not thread-safe. */
struct fr_build_id_cache;

/* Returns NULL if there is no memory. */
struct fr_build_id_cache *fr_build_id_cache_new(void);
struct fr_build_id_cache *fr_build_id_cache_free(struct fr_build_id_cache *c);

/* Identifies a file. When a file is gone, the file system may give its inode number to another file. The
   other file then has another generation. */
struct fr_file_id {
	uint64_t ino, generation; /* generation 0: not known, or the file system has no generations */
};

/* Reads the build-id of the file DIRFD/PATH, or takes it from C if C knows it. If FOLLOW is true, PATH can be
   a symbolic link. Returns the same values as fr_build_id_read(); also -ENOEXEC if the file is not a regular
   file; or -ESTALE if the file at PATH is not FILE. */
int fr_build_id_at(struct fr_build_id_cache *c, int dirfd, const char *path, bool follow,
	const struct fr_file_id *file, uint8_t ret[static FR_BUILD_ID_MAX]);

/* Returns whether the file FD, which has the inode number INO, is FILE. The generations are compared only if
   both generations are known. */
bool fr_file_has_id(int fd, uint64_t ino, const struct fr_file_id *file);
