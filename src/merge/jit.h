/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Links the objects of run-time code. A dump NAME has its objects in the directory NAME.jit beside it, and
 * its MMAP2 records have their absolute paths. The merge makes links to the objects in OUTPUT.jit, and writes
 * the paths of the links into the records. Objects with one name have the same content.
 */

#include "base/buf.h"
#include "merge/input.h"

/* Returns whether the input has a directory of objects. */
bool fr_input_has_jit(const struct fr_input *in);

/* If RECORD has the path of an object of IN, *RET is a copy of RECORD with the path of that object in
   DIRECTORY, the absolute path of the output's objects. BUFFER has the copy until the next call. Else *RET is
   RECORD. Only for records in our layout. Returns 0 or -ENOMEM. */
int fr_jit_rewrite_path(const struct fr_input *in, const char *directory,
	const struct perf_event_header *record, struct fr_buf *buffer, const struct perf_event_header **ret);

/* Links or copies the objects of all inputs into DIRFD/NAME.jit, and syncs that directory. Returns 0 or a
   negative errno. */
int fr_jit_link_objects(const struct fr_inputs *inputs, int dirfd, const char *name);

/* Removes the objects of an input that was removed. */
void fr_jit_remove_objects(const struct fr_input *in);
