/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside dump/: the file system that a dump goes to, for messages. All of these may wait for a disk. */

#include <stddef.h>
#include <stdint.h>

/* Write "ext4 /dev/vda1 on /var" for the mount of FD into RET, or "its file system" where that is not known.
 */
void fr_file_system_describe(int fd, char *ret, size_t size);
/* The bytes of disk that the file FD occupies; 0 if it cannot be examined. */
uint64_t fr_file_allocated_bytes(int fd);
/* Advice about a negative errno of a write, in static storage; NULL if there is none. */
const char *fr_file_system_hint(int code);
