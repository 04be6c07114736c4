/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between elf_file.c, elf_symbol.c, elf_debug.c and elf_marker.c. */

#include "source/elf_symbol.h"

#include <gelf.h>

/* What a table may have: a browser with all its symbols has a fifth of it. */
#define ELF_TABLE_MAX (512u << 20)
#define ELF_NOTES_MAX (16u << 20)
#define ELF_SECTIONS_MAX (1u << 16)

struct fr_elf {
	int fd;
	Elf *elf;
	char *path;
	pid_t pid;
	const char *debug_root;
	/* The debug file, once it was looked for and found. */
	bool debug_tried;
	int debug_fd;
	Elf *debug;
	char *debug_path; /* where it is or should be, for messages; NULL: no build-id and no link */
};

/* A table of strings, cut behind its last NUL: what is in it ends in it. */
struct elf_strings {
	const char *data;
	size_t size;
};
/* NULL for what is past the end. */
const char *elf_string(const struct elf_strings *s, size_t at);

/* elf_file.c */
/* libelf on FD, whose header has been looked at; NULL with D (which may be NULL). Ended before FD is closed.
 */
Elf *elf_begin_checked(int fd, const char *path, struct fr_diag *d);
/* Data of SECTION, in the file and at most MAX bytes; NULL otherwise. Borrowed from its ELF. */
Elf_Data *elf_section_data(Elf_Scn *section, size_t max);
bool elf_strings_of(Elf *elf, size_t section, struct elf_strings *ret);
/* The first section of TYPE (SHT_NULL: any) and NAME (NULL: any). */
Elf_Scn *elf_section_find(Elf *elf, uint32_t type, const char *name, GElf_Shdr *ret);
/* ADDRESS, which must be in a segment with FLAGS, as an offset in the file. */
bool elf_file_offset(Elf *elf, uint64_t address, uint32_t flags, uint64_t *ret);

/* elf_debug.c: look for E's debug file, once; E->debug is set where there is one. */
void elf_debug_find(struct fr_elf *e);

/* elf_near.c: the names nearest to one that is not there. */
struct elf_near {
	const char *wanted;
	size_t n;
	struct {
		const char *name; /* borrowed */
		unsigned rank;	  /* the lower, the nearer */
	} best[5];
};
void elf_near_consider(struct elf_near *n, const char *name);
/* "did you mean a, b or c?", or "". Returns RET. */
const char *elf_near_text(const struct elf_near *n, char *ret, size_t size);
