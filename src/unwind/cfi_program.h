/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Executes the instructions of call frame information: the common ones of a CIE, and those of each FDE, which
   give the rows of a function. Only files of unwind/ include this header. */

#include "unwind/cfi_cursor.h"
#include "unwind/cfi_expression.h"
#include "bpf/unwind.h"

enum cfi_how {
	CFI_UNSPECIFIED, /* as CFI_SAME, for the registers that a function must restore */
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_AT_CFA,	 /* saved at CFA + OFFSET */
	CFI_AT_REGISTER, /* saved at REG + OFFSET */
	CFI_ELSEWHERE,	 /* in another register, or at the address of another expression */
};

struct cfi_register {
	uint8_t how; /* enum cfi_how */
	uint8_t reg; /* of CFI_AT_REGISTER */
	int64_t offset;
};

/* Positions in cfi_state.regs. The saved registers come first, in the order of FR_UNWIND_SAVED_REGISTERS. */
enum cfi_slot {
	CFI_SLOT_STACK_POINTER = FR_UNWIND_SAVED,
	CFI_SLOT_RETURN_ADDRESS,
	CFI_SLOT_REST, /* all other registers, which nobody reads */
	_CFI_SLOTS,
};

/* How to find the caller's registers at one address. */
struct cfi_state {
	struct cfi_value cfa;
	struct cfi_register regs[_CFI_SLOTS];
};

struct cfi_cie {
	size_t offset;	   /* in the section */
	bool is_supported; /* false: the members below are not set */
	bool is_signal;	   /* the frame was interrupted by a signal */
	bool has_size;	   /* its FDEs have augmentation data, which begin with their size */
	uint8_t encoding;  /* of addresses: DW_EH_PE_* */
	uint64_t code_align;
	int64_t data_align;
	struct cfi_state initial;
};

struct cfi_fde {
	uint64_t begin, end; /* addresses in the object; BEGIN < END */
	const uint8_t *program;
	uint32_t program_len;
	uint32_t cie; /* index */
};

/* Executes the instructions PROGRAM of CIE, and sets its member INITIAL. Returns whether they are valid. */
bool cfi_run_cie(struct cfi_cie *cie, struct cfi_cursor program);

/* Gets the state S from the address PC on. S is NULL if there is none, because the instructions are damaged.
   Returns 0 or a negative errno. */
typedef int cfi_row_fn(void *arg, uint64_t pc, const struct cfi_cie *cie, const struct cfi_state *s);

/* Executes the instructions of FDE, and calls ROW for each address where the state changes, in the order of
   the addresses. Returns 0, or what ROW returned if this is negative. */
int cfi_run_fde(const struct cfi_fde *fde, const struct cfi_cie *cie, cfi_row_fn *row, void *arg);
