/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tables by offset. Call frame information has addresses as the ELF object sees them. A map record has an
 * offset in the file, and only the program headers of the object relate both. So that a map record is enough
 * to find the table, the tables in the memory of BPF programs have offsets in place of addresses: bias =
 * address of the map - its offset.
 */

#include "unwind/table.h"

/* Changes the addresses in T to offsets in the ELF object FD. Returns 0; -ENOEXEC if the program headers are
   damaged; -E2BIG; or another negative errno. On failure, T does not change. Can wait for a disk. */
int fr_unwind_offsets_apply(struct fr_unwind_table *t, int fd);

/* An executable segment. The segments are sorted, and do not overlap. */
struct fr_unwind_segment {
	uint64_t address, offset, bytes;
};
/* The same for N known segments. */
int fr_unwind_offsets_apply_segments(struct fr_unwind_table *t, const struct fr_unwind_segment *s, size_t n);
