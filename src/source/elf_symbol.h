/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds functions and markers in an ELF file. A uprobe needs their offset in the file.
 *
 * The file may belong to a container, so it is hostile input: it is read and never mapped, and the size of
 * its tables is limited. Any thread, one at a time for each object. The functions wait for the file's disk.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_ELF_DEBUG_ROOT "/usr/lib/debug"

struct fr_elf;

/* Opens PATH in the root of PID (0: ours). DEBUG_ROOT (borrowed until free) is the directory of debug files
   for stripped files. 0, or a negative errno with D: there is no such file, or it is not an ELF file of this
   machine. */
int fr_elf_open(const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d);
/* Does the same for an open file. FD is consumed even on failure. PATH is for messages and .gnu_debuglink. */
int fr_elf_open_fd(
	int fd, const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d);
struct fr_elf *fr_elf_free(struct fr_elf *e); /* NULL is allowed; returns NULL */

/* The descriptor of the file, borrowed. */
int fr_elf_fd(const struct fr_elf *e);

/* True: a Go program. It moves its stacks, and crashes if the return of a function is probed. */
bool fr_elf_is_go(const struct fr_elf *e);

struct fr_elf_symbol {
	uint64_t offset; /* in the file */
	uint64_t into;	 /* distance from the function's first byte */
};

/* Finds TEXT: "symbol", "symbol+0xOFFSET", or "symbol@file.c" for a static function. Searches the file, then
   its debug file. 0, or with D: -ENOENT (suggests a name); -ENOTUNIQ (lists the candidates); -EINVAL: it is
   not a function (data, imported, an IFUNC), or the offset is past its end. */
int fr_elf_find_symbol(struct fr_elf *e, const char *text, struct fr_elf_symbol *ret, struct fr_diag *d);

/* A static marker (USDT). The compiler may put it in several places. */
struct fr_elf_marker {
	uint64_t offset;    /* in the file */
	uint64_t semaphore; /* offset of the counter that enables it; 0: it is always enabled */
};
#define FR_ELF_MARKERS_MAX 64

/* Finds all places of PROVIDER:NAME. Returns their number, or with D: -ENOENT; -E2BIG: more than
   FR_ELF_MARKERS_MAX; -EBADMSG. */
int fr_elf_find_markers(struct fr_elf *e, const char *provider, const char *name,
	struct fr_elf_marker ret[static FR_ELF_MARKERS_MAX], struct fr_diag *d);
