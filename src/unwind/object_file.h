/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "unwind/objects.h"
#include "unwind/processes.h"

/* Opens the file of K, which is not the vdso: by the map of a process that has it, by its name in the root
   directory of such a process, or by its name in ours. The file must have the build-id or the inode of K.
   RET_DEBUG gets its separate debug file, or -1. Returns a descriptor or a negative errno.
   Can wait for a disk. */
int fr_unwind_object_file_open(
	const struct fr_unwind_known *k, const struct fr_unwind_processes *p, int *ret_debug);

/* Opens the file that walks of young processes missed. The same checks and return values. */
int fr_unwind_object_file_open_missed(const struct fr_unwind_known *k);

/* Finds the image of the vdso in the memory of this process. */
int fr_unwind_vdso_find(const void **ret, size_t *ret_size);
