/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds functions and static markers (USDT) in an ELF file. A uprobe needs their offset in the file.
 *
 * The file may belong to a container, so it is hostile input: it is read and never mapped, and the size of
 * its tables is limited. Only one thread at a time may use an object. The functions wait for the file's disk.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_ELF_DEBUG_ROOT "/usr/lib/debug"

struct fr_elf;

/* Opens PATH in the root of process PID (0: this process). DEBUG_ROOT is the directory of debug files; the
   string must stay valid until fr_elf_free(). Returns 0; or a negative errno, with D, for example if PATH is
   not an ELF file for this machine. */
int fr_elf_open(const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d);
/* Does the same for an open file. Takes FD, and closes it even on failure. PATH is used only for messages and
   to find the debug file of .gnu_debuglink. */
int fr_elf_open_fd(
	int fd, const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d);
struct fr_elf *fr_elf_free(struct fr_elf *e); /* NULL is allowed; returns NULL */

/* Returns the descriptor of the file. E owns it. */
int fr_elf_fd(const struct fr_elf *e);

/* Returns whether E is a Go program. Such a program crashes if the return of a function is probed. */
bool fr_elf_is_go(const struct fr_elf *e);

struct fr_elf_symbol {
	uint64_t offset; /* in the file */
	uint64_t into;	 /* distance from the function's first byte */
};

/* Finds TEXT: "symbol", "symbol+0xOFFSET", or "symbol@file.c" for a static function. Searches the file, then
   its debug file. Returns 0; or, with D: -ENOENT if there is no such symbol; -ENOTUNIQ if there are several;
   -EINVAL if it is not a function (data, imported, an IFUNC), or the offset is past its end; -EBADMSG if the
   file is damaged. */
int fr_elf_find_symbol(struct fr_elf *e, const char *text, struct fr_elf_symbol *ret, struct fr_diag *d);

/* A static marker (USDT). The compiler may put it in several places. */
struct fr_elf_marker {
	uint64_t offset;    /* in the file */
	uint64_t semaphore; /* offset of the counter that enables it; 0: always enabled */
};
#define FR_ELF_MARKERS_MAX 64

/* Finds all places of the marker PROVIDER:NAME. Returns their number; or, with D: -ENOENT if there is none;
   -E2BIG if there are more than FR_ELF_MARKERS_MAX; -EBADMSG if the file is damaged. */
int fr_elf_find_markers(struct fr_elf *e, const char *provider, const char *name,
	struct fr_elf_marker ret[static FR_ELF_MARKERS_MAX], struct fr_diag *d);
