/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in dump/ only: describes the file system of a dump, for messages. All functions can wait for a
   disk. */

#include <stddef.h>
#include <stdint.h>

/* Describes the mount of the file FD: writes a text like "ext4 /dev/vda1 on /var" to RET. If the mount is
   unknown, the text is "its file system". */
void fr_file_system_describe(int fd, char *ret, size_t size);
/* Returns the bytes of disk that the file FD occupies, or 0 if they are unknown. */
uint64_t fr_file_allocated_bytes(int fd);
/* CODE is the negative errno of a failed write. Returns a hint about what a person can do, in static storage;
   or NULL. */
const char *fr_file_system_hint(int code);
