/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the file of an object that was mapped when the recording was made. A file with another build-id than
 * the recorded one is not used. The places, in this order:
 *
 *   1. folders in the layout of perf's build-id cache: a bundle, the copies that the recorder keeps, ~/.debug
 *   2. the recorded path, and the same path in the root directory of the process, if it still runs; for an
 *      object of run-time code (perf.data.sample.TIME.jit/…), the same path beside the recording
 *   3. /usr/lib/debug/.build-id
 *   4. a debuginfod server, if $DEBUGINFOD_URLS names one
 */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_OBJECT_FOLDERS_MAX 8
#define FR_OBJECT_PATH_SIZE 80

struct fr_object_places {
	const char *folders[FR_OBJECT_FOLDERS_MAX]; /* in the layout of perf's build-id cache */
	size_t n_folders;
	const char *beside; /* the folder of the recording, which has the objects of run-time code */
	const char *
		kallsyms; /* the symbols of the kernel of the recording; NULL, or no such file: search them */
	/* The folder in which a bundle has files without a build-id, at their recorded paths. Then such files
	   are not searched on this machine, which can have others at the same paths. NULL: the recording is
	   not in a bundle. */
	const char *files;
	bool no_inlines;   /* do not show inlined functions, which takes time */
	bool only_folders; /* do not use the files of this machine, nor servers */
};

/* What the recording knows about the object. */
struct fr_wanted_object {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_len; /* 0: not known */
	uint32_t pid;	     /* a process that mapped it */
};

/* Opens the ELF file of an object. Returns a descriptor, and the path of the file, which the caller frees; or
   -ENOENT if no place has it. */
int fr_object_find_elf(
	const struct fr_object_places *places, const struct fr_wanted_object *wanted, char **ret_path);

/* What an object file says about a file with its debug information. */
struct fr_wanted_debug {
	const uint8_t *build_id;
	size_t build_id_len;  /* 0: not known */
	const char *link;     /* the name of the file; NULL: not known */
	uint32_t checksum;    /* CRC-32 of the file with this name. It counts if there is no build-id. */
	bool is_shared;	      /* several debug files share it; LINK is a path, and the build-id is known */
	const char *object;   /* the path of the file that says this; NULL: not known */
	const char *recorded; /* the recorded path of the object; NULL: not known */
};

/* Opens a debug file: in the folders, below /usr/lib/debug, beside the object, or from a server. PLACES can
   be NULL: there are no folders. Returns a descriptor, and the path of the file, which the caller frees, or
   NULL if it is not known; or -ENOENT. */
int fr_object_find_debug(
	const struct fr_object_places *places, const struct fr_wanted_debug *wanted, char **ret_path);

/* Writes the path of NAME ("elf", "debug", "kallsyms", "vdso") of the object with this build-id, in such
   a folder. */
void fr_object_format_path(
	const uint8_t *build_id, size_t len, const char *name, char ret[static FR_OBJECT_PATH_SIZE]);
/* Returns the path of an object of run-time code beside the recording, which is a part of PATH; or NULL if
   PATH is not that of such an object. */
const char *fr_object_beside(const char *path);

/* Reads the symbols of the kernel with this build-id, in the form of /proc/kallsyms. Returns 0; or -ENOENT if
   no place has them, or the kernel of this machine hides its addresses. */
int fr_object_find_kallsyms(
	const struct fr_object_places *places, const uint8_t *build_id, size_t len, struct fr_buf *ret);
