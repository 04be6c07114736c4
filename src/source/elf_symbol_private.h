/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by elf_file.c, elf_symbol.c, elf_debug.c, elf_marker.c and elf_near.c. */

#include "source/elf_symbol.h"

#include <gelf.h>

/* Limits for hostile files, in bytes or sections. The largest known table is a fifth of ELF_TABLE_MAX: the
   symbol table of a browser with all symbols. */
#define ELF_TABLE_MAX (512u << 20)
#define ELF_NOTES_MAX (16u << 20)
#define ELF_SECTIONS_MAX (1u << 16)

struct fr_elf {
	int fd;
	Elf *elf;
	char *path;
	pid_t pid;
	const char *debug_root;
	/* elf_debug_find() sets the members below. */
	bool debug_tried; /* elf_debug_find() has run */
	int debug_fd;
	Elf *debug;
	char *debug_path; /* path of the debug file, or the path where the debug file should be; NULL: the
			     file has no build-id and no .gnu_debuglink */
};

/* A table of strings, truncated after its last NUL. */
struct elf_strings {
	const char *data;
	size_t size;
};
/* Returns the string at AT; or NULL if AT is past the end. */
const char *elf_string(const struct elf_strings *s, size_t at);

/* elf_file.c */
/* Checks the header of the file FD and opens it with libelf. The caller calls elf_end() for the result before
   it closes FD. On failure, returns NULL, with a message in D (D may be NULL). */
Elf *elf_begin_checked(int fd, const char *path, struct fr_diag *d);
/* Returns the data of SECTION, which the Elf owns. Returns NULL if SECTION is NULL or empty, if the file does
   not contain the data, if the data are compressed, or if they have more than MAX bytes. */
Elf_Data *elf_section_data(Elf_Scn *section, size_t max);
/* Reads the table of strings in section number SECTION. Returns false if the section has no data, or no
   NUL. */
bool elf_read_strings(Elf *elf, size_t section, struct elf_strings *ret);
/* Returns the first section with TYPE (SHT_NULL: any) and NAME (NULL: any); or NULL if there is none. RET
   (NULL is allowed) gets the header of the section. */
Elf_Scn *elf_section_find(Elf *elf, uint32_t type, const char *name, GElf_Shdr *ret);
/* Converts ADDRESS to an offset in the file. Returns false if ADDRESS is in no loaded segment with FLAGS
   (PF_…). */
bool elf_file_offset(Elf *elf, uint64_t address, uint32_t flags, uint64_t *ret);

/* elf_debug.c: the first call searches for E's debug file, and sets E->debug if the debug file exists. Later
   calls do nothing. */
void elf_debug_find(struct fr_elf *e);

/* elf_near.c: finds the name that is most similar to `wanted`, among all names that are passed to
   elf_near_consider(). Before the first call, the caller sets `wanted`, and sets the other members to 0. */
#define ELF_NEAR_SIZE 121
struct elf_near {
	const char *wanted;
	unsigned rank;		  /* rank of `name`; a lower rank is more similar */
	char name[ELF_NEAR_SIZE]; /* "": none is similar */
};
void elf_near_consider(struct elf_near *near, const char *name);
