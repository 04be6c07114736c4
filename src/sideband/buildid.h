/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Build-ids of files that processes have mapped. Any process chooses these files, so they are hostile input:
 * only regular files are opened, no file is mapped, and at most a few tens of KiB are read, whatever the ELF
 * headers claim. As in the kernel, only program headers count. These functions may wait for a disk.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_BUILD_ID_MAX 20

/* Read the GNU build-id of the ELF file FD. The file offset does not move. Returns its length, 1 …
   FR_BUILD_ID_MAX (a longer one is truncated); 0: the file has none; or a negative errno. -ENOEXEC: no ELF
   file of this byte order. */
int fr_build_id_read(int fd, uint8_t ret[static FR_BUILD_ID_MAX]);

/* Known build-ids, by device, inode and time of change. Not thread-safe. */
struct fr_build_id_cache;

struct fr_build_id_cache *fr_build_id_cache_new(void); /* NULL: no memory */
struct fr_build_id_cache *fr_build_id_cache_free(struct fr_build_id_cache *c);

/* Identifies a file. A file system may reuse an inode number, with another generation. */
struct fr_file_id {
	uint64_t ino, generation; /* generation 0: not known, or the file system has none */
};

/* The build-id of DIRFD/PATH if that is still FILE. Only with FOLLOW a link at the end is followed. Returns
   as fr_build_id_read(); -ESTALE: the path is another file now. */
int fr_build_id_at(struct fr_build_id_cache *c, int dirfd, const char *path, bool follow,
	const struct fr_file_id *file, uint8_t ret[static FR_BUILD_ID_MAX]);

/* The file FD, whose inode is INO, is FILE. */
bool fr_file_has_id(int fd, uint64_t ino, const struct fr_file_id *file);
