/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Links the objects of run-time code (the ELF files in which a dump has the functions of JIT code). A dump
 * NAME has its objects in the directory NAME.jit beside it, and its MMAP2 records have the absolute paths of
 * the objects. flightrec-merge makes links to the objects in OUTPUT.jit, and writes the paths of the links
 * into the records. If objects of two inputs have the same name, they have the same content.
 */

#include "base/buf.h"
#include "merge/input.h"

/* Returns whether the input has a directory of objects. */
bool fr_input_has_jit(const struct fr_input *in);

/* If RECORD maps an object of IN, *RET is a copy of RECORD with another path: the path of the link in
   DIRECTORY. The copy is in BUFFER, and is valid until the next call. Otherwise *RET is RECORD. DIRECTORY is
   the absolute path of OUTPUT.jit. RECORD has the common layout of flightrecd (perfdata/record.h). Returns 0
   or -ENOMEM. */
int fr_jit_rewrite_path(const struct fr_input *in, const char *directory,
	const struct perf_event_header *record, struct fr_buf *buffer, const struct perf_event_header **ret);

/* Links the objects of all inputs into the directory DIRFD/NAME.jit, or copies the objects that cannot be
   linked, and syncs this directory. Returns 0 or a negative errno. */
int fr_jit_link_objects(const struct fr_inputs *inputs, int dirfd, const char *name);

/* Removes the objects of an input. Call it after the removal of the input. */
void fr_jit_remove_objects(const struct fr_input *in);
