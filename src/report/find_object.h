/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the file of an object that was mapped when the recording was made. A file with another build-id than the
 * recorded one is not used. The places, in this order:
 *
 *   1. folders in the layout of perf's build-id cache: a bundle, the copies that the recorder keeps, ~/.debug
 *   2. the recorded path, and the same path in the root directory of the process, if it still runs; for an object of
 *      run-time code (perf.data.sample.TIME.jit/…), the same path beside the recording
 *   3. /usr/lib/debug/.build-id
 *   4. a debuginfod server, if $DEBUGINFOD_URLS names one
 */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_OBJECT_FOLDERS_MAX 8

struct fr_object_places {
	const char *folders[FR_OBJECT_FOLDERS_MAX]; /* in the layout of perf's build-id cache */
	size_t n_folders;
	const char *beside; /* the folder of the recording, which has the objects of run-time code */
	bool no_inlines;    /* do not show inlined functions, which takes time */
	bool only_folders;  /* do not use the files of this machine, nor servers */
};

/* What the recording knows about the object. */
struct fr_wanted_object {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_len; /* 0: not known */
	uint32_t pid;	     /* a process that mapped it */
};

/* Opens the ELF file of an object. Returns a descriptor, and the path of the file, which the caller frees; or -ENOENT
   if no place has it. */
int fr_object_find_elf(
	const struct fr_object_places *places, const struct fr_wanted_object *wanted, char **ret_path);

/* Reads the symbols of the kernel with this build-id, in the form of /proc/kallsyms. Returns 0; or -ENOENT if no place
   has them, or the kernel of this machine hides its addresses. */
int fr_object_find_kallsyms(
	const struct fr_object_places *places, const uint8_t *build_id, size_t len, struct fr_buf *ret);
