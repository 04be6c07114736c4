/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An ELF file with its separate debug file: symbols and inlined functions. It is read by libdw, which finds
 * the debug file by build-id and debug link, and reads compressed symbols in .gnu_debugdata. The file may be
 * hostile.
 */

#include "report/symbols.h"

#include <stdbool.h>

struct fr_elf;
struct fr_object_places;

/* Takes over FD, also on failure. NAME is the path of the file, and RECORDED is that in the recording; the
   debug file is searched beside both, too. PLACES is where debug files are searched, too. RECORDED and PLACES
   can be NULL; they are used as long as the struct fr_elf is. Returns 0; -EBADMSG if it is not a usable ELF
   file; or -ENOMEM. Can wait for a disk, and for the network: see debuginfod.h. */
int fr_elf_open(int fd, const char *name, const char *recorded, const struct fr_object_places *places,
	struct fr_elf **ret);
/* Accepts NULL; returns NULL. */
struct fr_elf *fr_elf_free(struct fr_elf *e);

/* Adds the functions of E and of its debug file to S, which the caller finishes. Their addresses are offsets
   in the file, as those of maps are. Returns 0 or a negative errno. */
int fr_elf_add_symbols(struct fr_elf *e, struct fr_symbols *s);

/* Writes the names of the functions that are inlined at OFFSET in the file into RET, as fr_inlines_find()
   does. The names belong to E. Returns their number, or -ENOMEM. */
int fr_elf_find_inlined(struct fr_elf *e, uint64_t offset, const char **ret, size_t max);

/* Gets the bytes of the ELF file itself, which belong to E. Returns false if they cannot be read. */
bool fr_elf_bytes(const struct fr_elf *e, const void **ret, size_t *ret_len);

/* A separate file with debug information that E uses. */
struct fr_elf_debug {
	int fd;
	const char *link; /* the name in the file that refers to it, without folders; "" if it has none */
	const uint8_t *build_id;
	size_t build_id_len; /* 0: it was found by its name only */
};
enum fr_elf_debug_kind {
	FR_ELF_DEBUG,  /* what was stripped off the file */
	FR_ELF_SHARED, /* what several debug files share: the file of .gnu_debugaltlink */
	FR_ELF_N_DEBUG
};
/* Returns the file, which belongs to E; or NULL if none was used. */
const struct fr_elf_debug *fr_elf_debug(const struct fr_elf *e, enum fr_elf_debug_kind kind);
