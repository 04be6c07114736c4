// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/cfi_program.h"
#include "unwind/machine.h"
#include "base/cleanup.h"

#include <dwarf.h>

/* Compilers remember one state. Assembly that nests them deeper than this is not known. */
#define REMEMBERED_MAX 16

struct run {
	const struct cfi_cie *cie;
	struct cfi_cursor c;
	struct cfi_state s;
	struct cfi_state remembered[REMEMBERED_MAX];
	unsigned n_remembered;
	uint64_t advance; /* what the last instruction adds to the address */
};

static enum cfi_slot find_slot(uint64_t number)
{
	static const uint8_t saved[] = FR_UNWIND_SAVED_REGISTERS;

	for (unsigned i = 0; i < FR_ARRAY_SIZE(saved); i++)
		if (saved[i] == number)
			return (enum cfi_slot)i;
	if (number == CFI_RETURN_ADDRESS)
		return CFI_SLOT_RETURN_ADDRESS;
	return number == CFI_STACK_POINTER ? CFI_SLOT_STACK_POINTER : CFI_SLOT_REST;
}

/* Multiplies a number of the program by the factor of its CIE. */
static int64_t scale(struct run *r, int64_t v)
{
	int64_t product = 0;

	if (__builtin_mul_overflow(v, r->cie->data_align, &product))
		r->c.bad = true;
	return product;
}

static int64_t read_unsigned_offset(struct run *r)
{
	return scale(r, (int64_t)cfi_read_uleb128(&r->c));
}

static int64_t read_signed_offset(struct run *r)
{
	return scale(r, cfi_read_sleb128(&r->c));
}

static void set_register(struct run *r, uint64_t number, enum cfi_how how, int64_t offset)
{
	r->s.regs[find_slot(number)] = (struct cfi_register){(uint8_t)how, 0, offset};
}

/* The value of the expression is the address where the register is saved. */
static void set_register_expression(struct run *r, uint64_t number)
{
	struct cfi_value at = cfi_read_expression(cfi_take(&r->c, cfi_read_uleb128(&r->c)));

	set_register(r, number, at.form == CFI_REGISTER ? CFI_AT_REGISTER : CFI_ELSEWHERE, at.offset);
	r->s.regs[find_slot(number)].reg = at.reg;
}

static void restore_register(struct run *r, uint64_t number)
{
	enum cfi_slot slot = find_slot(number);

	r->s.regs[slot] = r->cie->initial.regs[slot];
}

static void set_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	r->s.cfa = cfi_register_value(reg, offset);
}

/* Changes a part of a CFA. This is possible only for a CFA that is a register and an offset. */
static void change_cfa(struct run *r, const uint64_t *reg, const int64_t *offset)
{
	const struct cfi_value *cfa = &r->s.cfa;

	if (cfa->form == CFI_REGISTER)
		set_cfa(r, reg ? *reg : cfa->reg, offset ? *offset : cfa->offset);
	else
		r->s.cfa.form = CFI_OTHER;
}

static void remember_state(struct run *r)
{
	if (r->n_remembered < REMEMBERED_MAX)
		r->remembered[r->n_remembered++] = r->s;
	else
		r->c.bad = true;
}

static void restore_state(struct run *r)
{
	if (r->n_remembered > 0)
		r->s = r->remembered[--r->n_remembered];
	else
		r->c.bad = true;
}

static void step_cfa(struct run *r, uint8_t op)
{
	uint64_t reg;
	int64_t offset;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_read_uleb128(&r->c);
		set_cfa(r, reg, (int64_t)cfi_read_uleb128(&r->c));
		break;
	case DW_CFA_def_cfa_sf:
		reg = cfi_read_uleb128(&r->c);
		set_cfa(r, reg, read_signed_offset(r));
		break;
	case DW_CFA_def_cfa_register:
		reg = cfi_read_uleb128(&r->c);
		change_cfa(r, &reg, NULL);
		break;
	case DW_CFA_def_cfa_offset:
		offset = (int64_t)cfi_read_uleb128(&r->c);
		change_cfa(r, NULL, &offset);
		break;
	case DW_CFA_def_cfa_offset_sf:
		offset = read_signed_offset(r);
		change_cfa(r, NULL, &offset);
		break;
	default: /* DW_CFA_def_cfa_expression */
		r->s.cfa = cfi_read_expression(cfi_take(&r->c, cfi_read_uleb128(&r->c)));
	}
}

/* The instructions that begin with the number of a register. */
static void step_register(struct run *r, uint8_t op)
{
	uint64_t number = cfi_read_uleb128(&r->c);

	switch (op) {
	case DW_CFA_offset_extended:
		set_register(r, number, CFI_AT_CFA, read_unsigned_offset(r));
		break;
	case DW_CFA_offset_extended_sf:
		set_register(r, number, CFI_AT_CFA, read_signed_offset(r));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		set_register(r, number, CFI_AT_CFA, scale(r, -(int64_t)(uint32_t)cfi_read_uleb128(&r->c)));
		break;
	case DW_CFA_restore_extended:
		restore_register(r, number);
		break;
	case DW_CFA_undefined:
		set_register(r, number, CFI_UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		set_register(r, number, CFI_SAME, 0);
		break;
	case DW_CFA_register:
		set_register(r, number, cfi_read_uleb128(&r->c) == number ? CFI_SAME : CFI_ELSEWHERE, 0);
		break;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		cfi_read_uleb128(&r->c);
		set_register(r, number, CFI_ELSEWHERE, 0);
		break;
	case DW_CFA_expression:
		set_register_expression(r, number);
		break;
	default: /* DW_CFA_val_expression */
		cfi_take(&r->c, cfi_read_uleb128(&r->c));
		set_register(r, number, CFI_ELSEWHERE, 0);
	}
}

static void advance(struct run *r, uint64_t n)
{
	if (__builtin_mul_overflow(n, r->cie->code_align, &r->advance))
		r->advance = UINT64_MAX;
}

/* The instructions that have no operand of their own type. DW_CFA_set_loc is missing: no compiler and no
   assembler makes it. */
static void step_extended(struct run *r, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_advance_loc1:
		advance(r, cfi_read(&r->c, 1));
		break;
	case DW_CFA_advance_loc2:
		advance(r, cfi_read(&r->c, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(r, cfi_read(&r->c, 4));
		break;
	case DW_CFA_remember_state:
		remember_state(r);
		break;
	case DW_CFA_restore_state:
		restore_state(r);
		break;
	case DW_CFA_GNU_args_size:
		cfi_read_uleb128(&r->c);
		break;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		step_cfa(r, op);
		break;
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		step_register(r, op);
		break;
	default:
		r->c.bad = true;
	}
}

/* Executes one instruction. The upper two bits of three instructions are their code, the others their first
   operand. */
static void step(struct run *r)
{
	uint8_t op = cfi_read_u8(&r->c);

	r->advance = 0;
	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		advance(r, op & 0x3f);
		break;
	case DW_CFA_offset:
		set_register(r, op & 0x3f, CFI_AT_CFA, read_unsigned_offset(r));
		break;
	case DW_CFA_restore:
		restore_register(r, op & 0x3f);
		break;
	default:
		step_extended(r, op);
	}
}

bool cfi_run_cie(struct cfi_cie *cie, struct cfi_cursor program)
{
	struct run r;

	memset(&cie->initial, 0, sizeof(cie->initial));
	r.cie = cie;
	r.c = program;
	r.s = cie->initial;
	r.n_remembered = 0;
	while (r.c.at < r.c.end && !r.c.bad)
		step(&r);
	cie->initial = r.s;
	return !r.c.bad;
}

int cfi_run_fde(const struct cfi_fde *fde, const struct cfi_cie *cie, cfi_row_fn *row, void *arg)
{
	struct run r; /* not set to zeros: it is large, and this function runs for each FDE */
	uint64_t pc = fde->begin;
	int result;

	r.cie = cie;
	r.c = (struct cfi_cursor){fde->program, fde->program + fde->program_len, false};
	r.s = cie->initial;
	r.n_remembered = 0;
	while (r.c.at < r.c.end) {
		step(&r);
		if (r.c.bad)
			return row(arg, pc, cie, NULL);
		if (r.advance == 0)
			continue;
		result = row(arg, pc, cie, &r.s);
		if (result < 0)
			return result;
		if (r.advance >= fde->end - pc)
			return 0;
		pc += r.advance;
	}
	return row(arg, pc, cie, &r.s);
}
