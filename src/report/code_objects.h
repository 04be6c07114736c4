/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The objects that have code: files that processes mapped, the kernel, its modules, BPF programs. From an
 * address at a time to its object, and to the symbols of the object, which are read when they are needed. Not
 * thread-safe.
 */

#include "perfdata/session.h"
#include "report/find_object.h"
#include "report/symbols.h"
#include "sideband/model.h"

struct fr_code_objects;
struct fr_elf;

#define FR_CODE_OBJECTS_MAX (1u << 16)

enum fr_object_kind { FR_OBJECT_FILE, FR_OBJECT_KERNEL, FR_OBJECT_MODULE, FR_OBJECT_BPF, FR_OBJECT_NONE };

/* An object. The texts belong to the table, which has equal texts only once. */
struct fr_code_object {
	enum fr_object_kind kind;
	const char *path;	/* as recorded: "/usr/lib/x86_64-linux-gnu/libc.so.6", "[kernel.kallsyms]" */
	const char *short_name; /* as perf prints it in the column dso: "libc.so.6" */
	uint8_t build_id[20];
	size_t build_id_len;
	const char *found; /* where its symbols were found; NULL: nowhere */
	bool is_loaded;	   /* its symbols were searched */
	uint64_t n_frames; /* in frames.h */
	uint32_t number;   /* from 0 on, in the order in which they were found */
	uint32_t pid;	   /* a process that mapped it */
	struct fr_symbols symbols;
	struct fr_elf *elf; /* NULL: it is no ELF file, or was not found */
};

/* Makes a table for a recording with the head SESSION. PLACES and its texts are borrowed. Returns 0 or
   -ENOMEM. */
int fr_code_objects_new(const struct fr_object_places *places, const struct fr_session *session,
	struct fr_code_objects **ret);
/* Accepts NULL; returns NULL. */
struct fr_code_objects *fr_code_objects_free(struct fr_code_objects *c);

/* Finds the object that has *ADDR in the process PID, in its mode MODE (PERF_RECORD_MISC_USER …). *ADDR
   becomes the address by which the symbols of the object are found. Returns an object that has no symbols if
   none is known; or NULL if there is no memory. Can wait for a disk. */
struct fr_code_object *fr_code_objects_locate(
	struct fr_code_objects *c, const struct fr_model *model, uint32_t pid, uint16_t mode, uint64_t *addr);
/* Reads the symbols of O, if that was not done yet. Returns 0 or -ENOMEM. Can wait for a disk. */
int fr_code_objects_load(struct fr_code_objects *c, struct fr_code_object *o);

size_t fr_code_objects_n(const struct fr_code_objects *c);
struct fr_code_object *fr_code_objects_get(const struct fr_code_objects *c, uint32_t number);

/* Returns a copy of TEXT, which has LEN bytes, that can be printed on any terminal, because files and
   processes choose these names. Equal texts are one text in memory. Returns NULL if there is no memory. */
const char *fr_code_objects_intern(struct fr_code_objects *c, const char *text, size_t len);
/* Returns whether the names of functions have used their share of the memory for texts. */
bool fr_code_objects_are_names_full(const struct fr_code_objects *c);
