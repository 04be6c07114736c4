/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An ELF file with its separate debug file: symbols and inlined functions. It is read by libdw, which finds the debug file by
 * build-id and debug link, and reads compressed symbols in .gnu_debugdata. The file may be hostile.
 */

#include "report/symbols.h"

struct fr_elf;

/* Takes over FD, also on failure. NAME is the path of the file; the debug file is searched beside it, too.
   Returns 0; -EBADMSG if it is not a usable ELF file; or -ENOMEM. Can wait for a disk, and, if $DEBUGINFOD_URLS is
   set, for the network: see debuginfod.h. */
int fr_elf_open(int fd, const char *name, struct fr_elf **ret);
/* Accepts NULL; returns NULL. */
struct fr_elf *fr_elf_free(struct fr_elf *e);

/* Adds the functions of E and of its debug file to S, which the caller finishes. Their addresses are offsets in the
   file, as those of maps are. Returns 0 or a negative errno. */
int fr_elf_add_symbols(struct fr_elf *e, struct fr_symbols *s);

/* Writes the names of the functions that are inlined at OFFSET in the file into RET, as fr_inlines_find() does. The
   names belong to E. Returns their number, or -ENOMEM. */
int fr_elf_find_inlined(struct fr_elf *e, uint64_t offset, const char **ret, size_t max);
