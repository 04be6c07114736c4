/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside dump/: words for where a file was to go. */

#include <stddef.h>
#include <stdint.h>

/* "ext4 /dev/vda1 on /var", or "its file system". */
void fr_where_file_system(int fd, char *ret, size_t size);
/* Bytes of disk that a file holds. */
uint64_t fr_where_allocated(int fd);
/* What to do about a negative errno of writing, or NULL. */
const char *fr_where_hint(int code);
