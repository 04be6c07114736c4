/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "unwind/objects.h"
#include "unwind/processes.h"

/* All of these functions open only a file with the build-id or the inode of K, which is not the vdso, and can
   wait for a disk. */

/* Goes on with the search for a trusted file of K, or begins one: first by the path that was seen last, in
   the root directory of pid 1; then by the map with this path; then by the maps of the processes that there
   were at the begin, some in each call. Returns a descriptor, -EAGAIN if the search goes on, or -ENOENT at
   its end. If the descriptor comes from another process, the next search begins with this process. */
int fr_unwind_object_file_search(struct fr_unwind_known *k, const struct fr_unwind_processes *p);
/* Opens any file of K. Returns a descriptor or a negative errno. */
int fr_unwind_object_file_open(const struct fr_unwind_known *k, const struct fr_unwind_processes *p);
/* Opens the separate debug file of the object that FD has open. Returns a descriptor or -1. */
int fr_unwind_object_file_open_debug(int fd);

/* Opens the file that walks of young processes missed. Returns a descriptor or a negative errno. */
int fr_unwind_object_file_open_missed(const struct fr_unwind_known *k);

/* Finds the image of the vdso in the memory of this process. */
int fr_unwind_vdso_find(const void **ret, size_t *ret_size);
