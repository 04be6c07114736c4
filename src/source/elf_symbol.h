/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds functions and static markers (USDT) in an ELF file. To attach a uprobe to a function or marker, the
 * kernel needs its offset in the file.
 *
 * A file in a container can be hostile input. So files are read and never mapped, and the size of their
 * tables is limited. Only one thread at a time is allowed to use a struct fr_elf. It is possible that the
 * functions wait for a disk.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_ELF_DEBUG_ROOT "/usr/lib/debug"

struct fr_elf;

/* Opens PATH in the root of process PID (0: this process). DEBUG_ROOT is the directory of debug files; the
   string must stay valid until fr_elf_free(). Returns 0; or a negative errno, with a message in D, for
   example if PATH is not an ELF file for this machine. */
int fr_elf_open(const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d);
/* Does the same as fr_elf_open(), for the open file FD. Takes FD: fr_elf_free() closes FD, and after a
   failure, FD is closed already. PATH is used only for messages, and to find the debug file that
   .gnu_debuglink names. */
int fr_elf_open_fd(
	int fd, const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d);
struct fr_elf *fr_elf_free(struct fr_elf *e); /* NULL is allowed; returns NULL */

/* Returns the descriptor of the file. E owns it. */
int fr_elf_fd(const struct fr_elf *e);

/* Returns whether E is a Go program. If the return of a function of a Go program is probed, the program
   crashes. */
bool fr_elf_is_go(const struct fr_elf *e);

struct fr_elf_symbol {
	uint64_t offset; /* in the file */
	uint64_t into;	 /* distance from the function's first byte, in bytes */
};

/* Finds TEXT: "symbol", "symbol+0xOFFSET", or "symbol@file.c" for a static function. Searches the file. If
   the file has no .symtab, then also searches the debug file of this file. Returns 0; or, with a message in
   D: -ENOENT if there is no such symbol; -ENOTUNIQ if several functions have this name; -EINVAL if TEXT is
   malformed, if the symbol is not a function (data, imported, an IFUNC), or if the offset is past the end of
   the function; -EBADMSG if the file is damaged. */
int fr_elf_find_symbol(struct fr_elf *e, const char *text, struct fr_elf_symbol *ret, struct fr_diag *d);

/* One place of a static marker (USDT). The compiler can put a marker into several places of the code. */
struct fr_elf_marker {
	uint64_t offset;    /* in the file */
	uint64_t semaphore; /* offset of the counter that enables the marker; 0: none, always enabled */
};
#define FR_ELF_MARKERS_MAX 64

/* Finds all places of the marker PROVIDER:NAME. Returns the number of places; or, with a message in D:
   -ENOENT if there is no such marker; -E2BIG if the marker is in more than FR_ELF_MARKERS_MAX places;
   -EBADMSG if the file is damaged. */
int fr_elf_find_markers(struct fr_elf *e, const char *provider, const char *name,
	struct fr_elf_marker ret[static FR_ELF_MARKERS_MAX], struct fr_diag *d);
