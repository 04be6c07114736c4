/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What find_object.c and find_debug.c share. All functions return a descriptor or -ENOENT. */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define FIND_DEBUG_FOLDER "/usr/lib/debug"

/* Opens a regular file. A pipe or a device at this path is not waited for. */
int find_open_regular(const char *path);
/* Returns FD if it is an ELF file with this build-id, or LEN is 0; else closes it. Accepts a negative FD. */
int find_check_id(int fd, const uint8_t *build_id, size_t len);
/* Opens NAME of the entry with this build-id in a folder in the layout of perf's build-id cache. RET_PATH
   gets its path. */
int find_open_in_folder(const char *folder, const uint8_t *build_id, size_t len, const char *name,
	char ret_path[static PATH_MAX]);
/* Opens the debug file with this build-id that a package has installed. PATH gets its path. */
int find_debug_by_id(const uint8_t *build_id, size_t len, char path[static PATH_MAX]);
