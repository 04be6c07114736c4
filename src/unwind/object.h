/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* An open ELF object, and its sections of call frame information. The file can have any content, and it can
   change at any time: it is read, not mapped. Only files of unwind/ include this header. */

#include "unwind/cfi_scan.h"

#include <libelf.h>

/* Programs have one or two executable segments. */
#define UNWIND_RANGES_MAX 16

struct unwind_object {
	Elf *elf;
	void *image;				    /* NULL: a file */
	struct cfi_range ranges[UNWIND_RANGES_MAX]; /* executable memory */
	size_t n_ranges;
};

/* Both functions open an object, which the caller closes. Until then, FD stays open. IMAGE is copied. They
   return 0; -ENOEXEC if it is not an object of this machine that can run or be loaded; or another negative
   errno. */
int unwind_object_open(int fd, struct unwind_object *ret);
int unwind_object_open_image(const void *image, size_t len, struct unwind_object *ret);
void unwind_object_close(struct unwind_object *o);

/* Reads .eh_frame or .debug_frame. RET is valid as long as O is open. Returns 0; 1 if there is no such
   section; -E2BIG; or -ENOEXEC if the section is damaged. */
int unwind_object_eh_frame(const struct unwind_object *o, struct cfi_section *ret);
int unwind_object_debug_frame(const struct unwind_object *o, struct cfi_section *ret);
