/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where in an ELF file a function or a marker is, for a uprobe: the kernel wants the offset in the file.
 *
 * The file may be a container's, so it is hostile input: it is read, never mapped; tables are bounded, and
 * read once. Any thread, but one at a time for each object; blocks on the disk that the file is on.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_ELF_DEBUG_ROOT "/usr/lib/debug"

struct fr_elf;

/* Open PATH in the root of PID (0: ours). DEBUG_ROOT (borrowed until free) is where debug files of stripped
   ones are looked for, ours first. 0, or a negative errno with D: no such file, not ELF, not of this machine.
 */
int fr_elf_open(const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d);
/* The same of an open file, which is taken in any case; PATH is for messages and for its .gnu_debuglink. */
int fr_elf_open_fd(
	int fd, const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d);
struct fr_elf *fr_elf_free(struct fr_elf *e); /* NULL */

/* The descriptor, which stays the object's: what it was parsed from, whatever its name has become. */
int fr_elf_fd(const struct fr_elf *e);

/* A Go program: its run time moves stacks, which the probe of a return does not survive. */
bool fr_elf_is_go(const struct fr_elf *e);

struct fr_elf_symbol {
	uint64_t offset; /* in the file */
	uint64_t into;	 /* of it: so far behind the function's first byte */
};

/* TEXT: "symbol", "symbol+0xOFFSET", and "symbol@file.c" for one of several static ones. By the tables of the
   file, else by its debug file. 0, or with D: -ENOENT (near misses), -ENOTUNIQ (which there are), -EINVAL (no
   function: data, imported, an IFUNC; past its end). */
int fr_elf_find_symbol(struct fr_elf *e, const char *text, struct fr_elf_symbol *ret, struct fr_diag *d);

/* A static marker (USDT) stands wherever its function was inlined. */
struct fr_elf_marker {
	uint64_t offset;    /* in the file */
	uint64_t semaphore; /* offset of the counter that switches it on; 0: it is always on */
};
#define FR_ELF_MARKERS_MAX 64

/* All places of PROVIDER:NAME: their number, at most FR_ELF_MARKERS_MAX, or as above: -ENOENT, -E2BIG. */
int fr_elf_find_markers(struct fr_elf *e, const char *provider, const char *name,
	struct fr_elf_marker ret[static FR_ELF_MARKERS_MAX], struct fr_diag *d);
