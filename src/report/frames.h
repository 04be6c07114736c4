/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of code addresses. A frame is a function of an object; each has a small number, which stays the
 * same while the table exists. The symbols of an object are read when the first address in it is looked up.
 * Not thread-safe.
 */

#include "base/diag.h"
#include "perfdata/session.h"
#include "report/code_objects.h"

struct fr_frames;

/* Inlined functions at one address that are shown; the outermost ones are kept. */
#define FR_FRAMES_AT_ONE_ADDRESS 16

struct fr_frame {
	const char *name; /* of the function; if it is not known: the short name of the object in brackets */
	uint32_t object;
	/* The first frame with this name, in an object with this short name: several versions of a file can
	   be mapped, and a person takes their functions as the same. */
	uint32_t same;
	bool is_known;
	bool is_inlined; /* into the frame below it */
};

/* Makes a table for a recording with the head SESSION. PLACES and its texts are borrowed. Returns 0 or
   -ENOMEM. */
int fr_frames_new(
	const struct fr_object_places *places, const struct fr_session *session, struct fr_frames **ret);
/* Accepts NULL; returns NULL. */
struct fr_frames *fr_frames_free(struct fr_frames *f);

/* Looks up ADDR, which the process PID had in its mode MODE (PERF_RECORD_MISC_USER …). IS_RETURN says that it
   is a return address, as all addresses of a call chain are but the innermost one of a mode. RET gets the
   frames there, the outermost function first: one, and more if functions are inlined. Returns their number,
   at least 1; or -ENOMEM. Can wait for a disk. */
int fr_frames_find(struct fr_frames *f, const struct fr_model *model, uint32_t pid, uint64_t addr,
	uint16_t mode, bool is_return, uint32_t ret[static FR_FRAMES_AT_ONE_ADDRESS]);

size_t fr_frames_n(const struct fr_frames *f);
const struct fr_frame *fr_frames_get(const struct fr_frames *f, uint32_t frame);
size_t fr_frames_n_objects(const struct fr_frames *f);
const struct fr_code_object *fr_frames_object(const struct fr_frames *f, uint32_t object);
/* Returns the ELF file of an object; NULL if it is none, or no address in it was looked up, or it was not
 * found. */
const struct fr_elf *fr_frames_elf(const struct fr_frames *f, uint32_t object);
