/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes the unwind table of an ELF object from its call frame information (.eh_frame; or .debug_frame of the
 * object, or of its separate debug file). The rows of a table are sorted by address and grouped by pages of
 * 64 KiB; equal rules are stored once (src/bpf/unwind.h).
 */

#include "bpf/unwind.h"

#include <stddef.h>
#include <stdint.h>

struct fr_unwind_table {
	uint32_t first_page, n_pages;
	struct fr_unwind_span { /* one for each page */
		uint32_t first_row, n_rows;
	} * pages;
	struct fr_unwind_row *rows; /* in the order of the pages; two pages never share a row */
	size_t n_rows;
	struct fr_unwind_rule *rules; /* rule 0 has the kind FR_UNWIND_NONE */
	uint32_t n_rules;
	uint32_t skipped; /* entries (FDEs) or rows that are damaged or not supported: they have rule 0 */
};

/* FD is an open ELF object, DEBUG_FD its separate debug file, or -1. Both can have any content. Returns 0 and
   sets RET; 1 if the object has no call frame information; -ENOEXEC if it is not an ELF object of this
   machine, or is damaged; -E2BIG if it has more than 64 MiB of call frame information, a million functions, 8
   million rows or 8 GiB of code; or another negative errno. Can wait for a disk, and can take a second and
   100 MiB of memory for a very large object. Any thread. */
int fr_unwind_table_read(int fd, int debug_fd, struct fr_unwind_table *ret);
/* The same for an image in memory, as the vDSO. */
int fr_unwind_table_read_image(const void *image, size_t len, struct fr_unwind_table *ret);
void fr_unwind_table_deinit(struct fr_unwind_table *t);

/* Returns the rule of the address PC in the object; rule 0 if there is none. For tests. */
const struct fr_unwind_rule *fr_unwind_table_find(const struct fr_unwind_table *t, uint64_t pc);
