/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The DWARF expressions that compilers, linkers and hand-written assembly use for the CFA. A BPF program
   cannot evaluate other expressions. Only files of unwind/ include this header. */

#include "unwind/cfi_cursor.h"

enum cfi_form {
	CFI_OTHER,	 /* not known */
	CFI_REGISTER,	 /* REG + OFFSET */
	CFI_DEREFERENCE, /* *(REG + OFFSET) + ADD */
	CFI_PLT,	 /* as FR_UNWIND_PLT; ADD has the mask and the limit */
};

struct cfi_value {
	uint8_t form; /* enum cfi_form */
	uint8_t reg;  /* 0 to 15 */
	int32_t offset, add;
};

/* Returns the value REG + OFFSET, or CFI_OTHER if these numbers are not possible in a rule. */
struct cfi_value cfi_register_value(uint64_t reg, int64_t offset);
/* Reads the expression that is all of C. Returns CFI_OTHER for an expression that is not supported. */
struct cfi_value cfi_read_expression(struct cfi_cursor c);
