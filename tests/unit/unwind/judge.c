// SPDX-License-Identifier: GPL-2.0-or-later
#include "judge.h"
#include "../unit.h"
#include "base/cleanup.h"

#include <dwarf.h>
#include <string.h>

static bool is_constant(const Dwarf_Op *op, int64_t *ret)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		*ret = op->atom - DW_OP_lit0;
	else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts)
		*ret = (int64_t)op->number;
	else
		return false;
	return true;
}

/* The number that the operations after DW_OP_deref add. */
static bool is_addition(const Dwarf_Op *ops, size_t n, int64_t *ret)
{
	*ret = 0;
	if (n == 1 && ops[0].atom == DW_OP_plus_uconst)
		*ret = (int64_t)ops[0].number;
	else if (n != 0)
		return n == 2 && is_constant(&ops[0], ret) && ops[1].atom == DW_OP_plus;
	return true;
}

static bool is_plt(const Dwarf_Op *ops, size_t n, int64_t *ret)
{
	static const uint8_t atoms[] = {
		DW_OP_breg16, 0, DW_OP_and, 0, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	int64_t mask = 0, limit = 0;

	if (n != FR_ARRAY_SIZE(atoms) || ops[0].number != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (atoms[i] && atoms[i] != ops[i].atom)
			return false;
	*ret = 0;
	if (!is_constant(&ops[1], &mask) || !is_constant(&ops[3], &limit))
		return false;
	*ret = mask << 8 | limit;
	return true;
}

/* Sets kind, reg, cfa_offset and add. */
static bool judge_cfa(const Dwarf_Op *ops, size_t n, struct fr_unwind_rule *ret)
{
	int64_t reg, offset, add = 0;

	if (n == 0)
		return false;
	if (ops[0].atom == DW_OP_bregx) {
		reg = (int64_t)ops[0].number;
		offset = (int64_t)ops[0].number2;
	} else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		reg = ops[0].atom - DW_OP_breg0;
		offset = (int64_t)ops[0].number;
	} else {
		return false;
	}
	if (n == 1)
		ret->kind = FR_UNWIND_REGISTER;
	else if (ops[1].atom == DW_OP_deref && is_addition(ops + 2, n - 2, &add))
		ret->kind = FR_UNWIND_DEREFERENCE;
	else if (reg == 7 && is_plt(ops + 1, n - 1, &add))
		ret->kind = FR_UNWIND_PLT;
	else
		return false;
	ret->reg = (uint8_t)reg;
	ret->cfa_offset = (int32_t)offset;
	ret->add = (int32_t)add;
	return reg < 16 && ret->cfa_offset == offset && ret->add == add;
}

/* RELATIVE + N: at an offset from the register N. */
enum where { SAME, UNDEFINED, SAVED, CFA_ITSELF, ELSEWHERE, RELATIVE };

/* Where the caller's value of the register REG is. */
static enum where judge_register(Dwarf_Frame *frame, int reg, int64_t *ret_offset)
{
	Dwarf_Op memory[3], *ops;
	size_t n;

	*ret_offset = 0;
	assert_int_equal(dwarf_frame_register(frame, reg, memory, &ops, &n), 0);
	if (n == 0)
		return ops == NULL ? SAME : UNDEFINED;
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return n == 1 && ops[0].atom == DW_OP_regx && ops[0].number == (Dwarf_Word)reg ? SAME
											       : ELSEWHERE;
	/* An expression begins with the CFA on its stack. */
	if (n == 2 && ops[1].atom >= DW_OP_breg0 && ops[1].atom <= DW_OP_breg15) {
		*ret_offset = (int64_t)ops[1].number;
		return (enum where)(RELATIVE + (ops[1].atom - DW_OP_breg0));
	}
	if (ops[n - 1].atom == DW_OP_stack_value)
		return n == 2 ? CFA_ITSELF : ELSEWHERE;
	if (n == 2 && ops[1].atom == DW_OP_plus_uconst)
		*ret_offset = (int64_t)ops[1].number;
	else if (n != 1)
		return ELSEWHERE;
	return SAVED;
}

/* Makes RULE a REALIGNED one, if registers are saved relative to the register on which the CFA depends. */
static void judge_realigned(Dwarf_Frame *frame, struct fr_unwind_rule *rule)
{
	static const uint8_t saved[] = FR_UNWIND_SAVED_REGISTERS;
	int64_t offset;

	for (unsigned i = 0; rule->kind == FR_UNWIND_DEREFERENCE && i < FR_UNWIND_SAVED; i++)
		if (judge_register(frame, saved[i], &offset) == (enum where)(RELATIVE + rule->reg))
			rule->kind = FR_UNWIND_REALIGNED;
}

static int16_t judge_saved(Dwarf_Frame *frame, int reg, const struct fr_unwind_rule *rule)
{
	int64_t offset;
	enum where where = judge_register(frame, reg, &offset);

	if (rule->kind == FR_UNWIND_REALIGNED && where == (enum where)(RELATIVE + rule->reg)) {
		if (offset == 0)
			return 32767;
		return offset >= -32768 && offset < 32767 ? (int16_t)offset : -32768;
	}
	if (rule->kind == FR_UNWIND_REALIGNED && where == SAVED)
		return -32768;
	if (where >= RELATIVE) {
		if (rule->kind != FR_UNWIND_REGISTER || rule->reg != where - RELATIVE)
			return -32768;
		offset -= rule->cfa_offset;
		where = SAVED;
	}

	/* elfutils 0.188 has a mistake: in its list of registers that a function must restore, rbx has the
	   number 0. So "undefined" can mean that there is no instruction for rbx. */
	if (where == SAME || (reg == 3 && where == UNDEFINED))
		return 0;
	return where == SAVED && offset != 0 && offset >= -32768 && offset <= 32767 ? (int16_t)offset
										    : -32768;
}

/* Makes the rule of FRAME. Returns false if there is none that a table can have. */
static bool judge_frame(Dwarf_Frame *frame, struct fr_unwind_rule *ret)
{
	static const uint8_t saved[] = FR_UNWIND_SAVED_REGISTERS;
	bool is_signal, has_cfa;
	Dwarf_Op *ops;
	int64_t offset;
	size_t n;
	enum where where;

	memset(ret, 0, sizeof(*ret));
	if (dwarf_frame_info(frame, NULL, NULL, &is_signal) != 16)
		return false;
	where = judge_register(frame, 16, &offset);
	if (where == UNDEFINED) {
		ret->kind = FR_UNWIND_END;
		return true;
	}
	if (dwarf_frame_cfa(frame, &ops, &n) != 0)
		return false; /* for example an offset for a CFA that is an expression */
	has_cfa = judge_cfa(ops, n, ret);
	if (has_cfa && is_signal && where == RELATIVE + 7 && offset == 168 &&
		ret->kind == FR_UNWIND_DEREFERENCE && ret->reg == 7 && ret->cfa_offset == 160 &&
		ret->add == 0) {
		*ret = (struct fr_unwind_rule){.kind = FR_UNWIND_SIGNAL};
		return true;
	}
	ret->ra = (int16_t)offset;
	if (!has_cfa || where != SAVED || ret->ra != offset)
		return false;
	judge_realigned(frame, ret);
	for (unsigned i = 0; i < FR_UNWIND_SAVED; i++)
		ret->saved[i] = judge_saved(frame, saved[i], ret);
	return judge_register(frame, 7, &offset) == CFA_ITSELF;
}

static void print_rule(const char *who, const struct fr_unwind_rule *r)
{
	print_message("%s: kind %u, CFA r%u%+d%+d, return address %+d, saved", who, r->kind, r->reg,
		r->cfa_offset, r->add, r->ra);
	for (unsigned i = 0; i < FR_UNWIND_SAVED; i++)
		print_message(" %d", r->saved[i]);
	print_message("\n");
}

/* Compares the rule of one address. Returns the address where libdw's answer ends, or 0. */
static uint64_t judge_address(const struct fr_unwind_table *t, Dwarf_CFI *cfi, uint64_t pc)
{
	const struct fr_unwind_rule *rule = fr_unwind_table_find(t, pc);
	struct fr_unwind_rule expected = {.kind = FR_UNWIND_NONE};
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end = 0;

	if (dwarf_cfi_addrframe(cfi, pc, &frame) == 0) {
		dwarf_frame_info(frame, &start, &end, NULL);
		if (!judge_frame(frame, &expected))
			expected = (struct fr_unwind_rule){.kind = FR_UNWIND_NONE};
	}
	if (memcmp(rule, &expected, sizeof(expected)) != 0) {
		print_rule("the table", rule);
		print_rule("libdw", &expected);
		fail_msg("the table and libdw have different rules for %#llx", (unsigned long long)pc);
	}
	free(frame);
	return end;
}

/* Compares the addresses of a row: all where libdw's answer changes, and the last. */
static size_t judge_row(const struct fr_unwind_table *t, Dwarf_CFI *cfi, uint64_t begin, uint64_t end)
{
	size_t n = 1;

	for (uint64_t pc = begin; pc && pc < end; n++)
		pc = judge_address(t, cfi, pc);
	judge_address(t, cfi, end - 1);
	return n;
}

size_t judge_table(const struct fr_unwind_table *t, Dwarf_CFI *cfi, unsigned n_random)
{
	uint64_t first = (uint64_t)t->first_page << FR_UNWIND_PAGE_BITS;
	uint64_t len = (uint64_t)t->n_pages << FR_UNWIND_PAGE_BITS;
	size_t compared = n_random;

	for (uint32_t i = 0; i < t->n_pages; i++) {
		const struct fr_unwind_span *page = &t->pages[i];
		const struct fr_unwind_row *rows = t->rows + page->first_row;
		uint64_t base = first + ((uint64_t)i << FR_UNWIND_PAGE_BITS);

		assert_true(page->n_rows == 0 || rows[0].pc == 0);
		for (uint32_t j = 0; j < page->n_rows; j++) {
			uint64_t end = j + 1 < page->n_rows ? rows[j + 1].pc : 1u << FR_UNWIND_PAGE_BITS;

			assert_true(rows[j].pc < end && rows[j].rule < t->n_rules);
			compared += judge_row(t, cfi, base + rows[j].pc, base + end);
		}
	}
	srandom(1);
	for (unsigned i = 0; i < n_random; i++)
		judge_address(t, cfi, first + (uint64_t)random() % len);
	return compared;
}
