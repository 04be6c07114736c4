/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The symbols of one object: an ELF file, the kernel, or a kernel module. If several symbols have the same
 * address, one is chosen by the rules of perf, so that names agree with those of perf report. Plain data; not
 * thread-safe.
 */

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_symbol {
	uint64_t start, end; /* end: the address after the last byte */
	uint32_t name;	     /* offset in `names`; NUL-terminated */
	uint8_t is_weak, is_global;
};

struct fr_symbols {
	struct fr_symbol *v;
	size_t n, cap;
	struct fr_buf names;
};

/* Adds a symbol of SIZE bytes; if SIZE is 0, its end is the start of the next symbol. More symbols than 2^22
   are ignored. Returns 0 or -ENOMEM. */
int fr_symbols_add(struct fr_symbols *s, uint64_t start, uint64_t size, bool is_weak, bool is_global,
	const char *name, size_t len);
/* Sorts the symbols and completes their ends. Call it once, after the last symbol was added. KERNEL says that
   they are of kallsyms, which has no sizes: of the symbols of one address, the last one is taken, and the
   last symbol before a gap ends at the end of its page. */
void fr_symbols_finish(struct fr_symbols *s, bool kernel);
/* Returns the symbol that contains ADDR, or NULL. */
const struct fr_symbol *fr_symbols_find(const struct fr_symbols *s, uint64_t addr);
static inline const char *fr_symbols_name(const struct fr_symbols *s, const struct fr_symbol *symbol)
{
	return (const char *)s->names.data + symbol->name;
}
void fr_symbols_deinit(struct fr_symbols *s);
#define _cleanup_symbols_ _cleanup_(fr_symbols_deinit)

/* Reads the text of /proc/kallsyms or of a copy. If MODULE is not NULL, takes only its symbols (without
   brackets); if it is "", only those of the kernel itself. Returns 0 or -ENOMEM. */
int fr_symbols_add_kallsyms(struct fr_symbols *s, const char *text, size_t len, const char *module);
/* Returns the address of the symbol NAME in the text of kallsyms, or 0. */
uint64_t fr_kallsyms_find(const char *text, size_t len, const char *name);
