// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/cfi_expression.h"
#include "unwind/machine.h"

#include <dwarf.h>

static const struct cfi_value other = {CFI_OTHER, 0, 0, 0};

struct cfi_value cfi_register_value(uint64_t reg, int64_t offset)
{
	if (reg >= CFI_CFA_REGISTERS || offset != (int32_t)offset)
		return other;
	return (struct cfi_value){CFI_REGISTER, (uint8_t)reg, (int32_t)offset, 0};
}

/* Reads an operation that pushes a small constant. */
static int64_t read_constant(struct cfi_cursor *c)
{
	uint8_t op = cfi_read_u8(c);

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		return op - DW_OP_lit0;
	switch (op) {
	case DW_OP_const1u:
		return cfi_read_u8(c);
	case DW_OP_const1s:
		return cfi_read_signed(c, 1);
	case DW_OP_const2u:
		return (int64_t)cfi_read(c, 2);
	case DW_OP_const2s:
		return cfi_read_signed(c, 2);
	case DW_OP_const4u:
		return (int64_t)cfi_read(c, 4);
	case DW_OP_const4s:
		return cfi_read_signed(c, 4);
	case DW_OP_constu:
		return (int64_t)cfi_read_uleb128(c);
	case DW_OP_consts:
		return cfi_read_sleb128(c);
	default:
		c->bad = true;
		return 0;
	}
}

static void expect(struct cfi_cursor *c, uint8_t op)
{
	if (cfi_read_u8(c) != op)
		c->bad = true;
}

/* After DW_OP_deref: the number to add, as one operation or as two. */
static int64_t read_addend(struct cfi_cursor *c)
{
	int64_t v;

	if (c->at == c->end)
		return 0;
	if (*c->at == DW_OP_plus_uconst) {
		c->at++;
		return (int64_t)cfi_read_uleb128(c);
	}
	v = read_constant(c);
	expect(c, DW_OP_plus);
	return v;
}

/* After the register and DW_OP_breg16: the second half of the expression that linkers make for the PLT. An
   entry of the PLT pushes a number by its second instruction, so the CFA depends on the address within the
   entry. */
static int64_t read_plt(struct cfi_cursor *c)
{
	int64_t mask, limit;

	if (cfi_read_sleb128(c) != 0)
		c->bad = true;
	mask = read_constant(c);
	expect(c, DW_OP_and);
	limit = read_constant(c);
	expect(c, DW_OP_ge);
	expect(c, DW_OP_lit3);
	expect(c, DW_OP_shl);
	expect(c, DW_OP_plus);
	if (mask < 0 || mask > INT32_MAX >> 8 || limit < 0 || limit > UINT8_MAX)
		c->bad = true;
	return c->bad ? 0 : mask << 8 | limit;
}

static struct cfi_value read_register(struct cfi_cursor *c)
{
	uint8_t op = cfi_read_u8(c);
	uint64_t reg = 0;

	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		reg = op - DW_OP_breg0;
	else if (op == DW_OP_bregx)
		reg = cfi_read_uleb128(c);
	else
		c->bad = true;
	return cfi_register_value(reg, cfi_read_sleb128(c));
}

struct cfi_value cfi_read_expression(struct cfi_cursor c)
{
	struct cfi_value v = read_register(&c);
	int64_t add = 0;

	if (v.form == CFI_OTHER)
		return other;
	if (c.at < c.end) {
		uint8_t op = cfi_read_u8(&c);

		if (op == DW_OP_deref) {
			v.form = CFI_DEREFERENCE;
			add = read_addend(&c);
		} else if (op == DW_OP_breg0 + CFI_RETURN_ADDRESS && v.reg == CFI_STACK_POINTER) {
			v.form = CFI_PLT;
			add = read_plt(&c);
		} else {
			return other;
		}
	}
	v.add = (int32_t)add;
	return c.bad || c.at != c.end || v.add != add ? other : v;
}
