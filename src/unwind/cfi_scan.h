/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the entries of a section .eh_frame or .debug_frame. Only files of unwind/ include this header. */

#include "unwind/cfi_program.h"

struct cfi_section {
	const uint8_t *data;
	size_t len;
	uint64_t address;  /* in the object */
	bool is_debug;	   /* .debug_frame */
	bool is_unbounded; /* LEN is not known, but this is the most: a length of 0 ends the section */
};

/* Executable memory of the object. */
struct cfi_range {
	uint64_t begin, end;
};

struct cfi_entries {
	struct cfi_cie *cies; /* sorted by offset */
	struct cfi_fde *fdes; /* sorted by BEGIN, and without overlap */
	size_t n_cies, n_fdes;
	uint32_t skipped; /* FDEs that are damaged, not supported, or not in executable memory */
};

/* Reads the entries of S whose code is in RANGES. If several FDEs have the same code, the FDE that begins
   last has it; of those that begin at the same address, the longest; of these, the first in the section. The
   result has pointers into S. Returns 0, -E2BIG or -ENOMEM. */
int cfi_scan(const struct cfi_section *s, const struct cfi_range *ranges, size_t n_ranges,
	struct cfi_entries *ret);
void cfi_entries_deinit(struct cfi_entries *e);
