/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The objects of run-time code. A dump NAME has them in NAME.jit/ beside it, and its MMAP2 records name them
 * by their absolute path. The output gets links to them in OUTPUT.jit/, and its records name these. The name
 * of an object tells its content, so two dumps may have the same object.
 */

#include "base/buf.h"
#include "merge/input.h"

/* Whether the input has a directory of objects. */
bool fr_input_has_jit(const struct fr_input *in);

/* If RECORD names an object of IN, RET is a copy, in BUFFER until the next call, that names the object in
   DIRECTORY, the absolute path of the output's objects. Else RET is RECORD. Our layout only. 0 or -ENOMEM. */
int fr_jit_rewrite_path(const struct fr_input *in, const char *directory,
	const struct perf_event_header *record, struct fr_buf *buffer, const struct perf_event_header **ret);

/* Links (or copies) the objects of all inputs into DIRFD/NAME.jit and syncs it. 0 or a negative errno. */
int fr_jit_link_objects(const struct fr_inputs *inputs, int dirfd, const char *name);

/* Removes the objects of an input that was removed. */
void fr_jit_remove_objects(const struct fr_input *in);
