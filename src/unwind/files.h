/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tells BPF programs the objects of files, so that they know the maps of young processes by themselves
 * (struct fr_unwind_young). A file is told when a walk has missed it.
 */

#include "unwind/kernel.h"
#include "unwind/objects.h"

/* Tells the file of the object that was missed most often. Can wait for a disk. Returns whether there was
   one. The same thread as for the objects. */
bool fr_unwind_files_learn_one(
	struct fr_unwind_objects *o, const struct fr_unwind_kernel *kernel, uint64_t now_ns);
