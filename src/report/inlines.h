/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The functions that a compiler inlined, from the debug information of an ELF file. For each compilation unit
 * that has an address of a sample, the ranges of its inlined functions are read once. Not thread-safe.
 */

#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

struct fr_inlines;

/* MODULE is borrowed. Returns 0; -ENOENT if it has no debug information; or -ENOMEM. Can wait for a disk. */
int fr_inlines_new(Dwfl_Module *module, struct fr_inlines **ret);
/* Accepts NULL; returns NULL. */
struct fr_inlines *fr_inlines_free(struct fr_inlines *l);

/* Writes the names of the functions that are inlined at ADDRESS, an address of libdwfl, into RET: the
   outermost first, without the function that contains them all. If there are more than MAX, the innermost
   ones are left out. The names belong to MODULE, and can be mangled. Returns their number, or -ENOMEM. */
int fr_inlines_find(struct fr_inlines *l, uint64_t address, const char **ret, size_t max);
