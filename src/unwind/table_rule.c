// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/table_rule.h"
#include "unwind/machine.h"

/* The instructions of __restore_rt say where the kernel has saved each register. These two are enough to
   recognize it. */
static bool is_signal_frame(const struct cfi_cie *cie, const struct cfi_state *s)
{
	const struct cfi_register *ra = &s->regs[CFI_SLOT_RETURN_ADDRESS];
	const struct cfi_value *cfa = &s->cfa;

	return cie->is_signal && cfa->form == CFI_DEREFERENCE && cfa->reg == CFI_STACK_POINTER &&
	       cfa->offset == CFI_SIGNAL_STACK_POINTER && cfa->add == 0 && ra->how == CFI_AT_REGISTER &&
	       ra->reg == CFI_STACK_POINTER && ra->offset == CFI_SIGNAL_RETURN_ADDRESS;
}

/* Hand-written assembly saves registers relative to the stack pointer. If the CFA also is, the distance of
   the two is known. */
static int16_t saved_at(const struct cfi_register *r, const struct cfi_value *cfa)
{
	int64_t offset = r->offset;

	if (r->how == CFI_UNSPECIFIED || r->how == CFI_SAME)
		return FR_UNWIND_SAME;
	if (r->how == CFI_AT_REGISTER && cfa->form == CFI_REGISTER && cfa->reg == r->reg)
		offset -= cfa->offset;
	else if (r->how != CFI_AT_CFA)
		return FR_UNWIND_LOST;
	return offset == (int16_t)offset && offset != FR_UNWIND_SAME ? (int16_t)offset : FR_UNWIND_LOST;
}

/* A function that aligns its stack saves registers relative to the frame pointer, and there, too, the address
   of its arguments, which is the CFA. */
static int16_t saved_in_realigned(const struct cfi_register *r, const struct cfi_value *cfa)
{
	if (r->how == CFI_UNSPECIFIED || r->how == CFI_SAME)
		return FR_UNWIND_SAME;
	if (r->how != CFI_AT_REGISTER || r->reg != cfa->reg || r->offset != (int16_t)r->offset ||
		r->offset == FR_UNWIND_HERE)
		return FR_UNWIND_LOST;
	return r->offset == 0 ? FR_UNWIND_HERE : (int16_t)r->offset;
}

static bool is_realigned(const struct cfi_state *s)
{
	for (unsigned i = 0; s->cfa.form == CFI_DEREFERENCE && i < FR_UNWIND_SAVED; i++)
		if (s->regs[i].how == CFI_AT_REGISTER && s->regs[i].reg == s->cfa.reg)
			return true;
	return false;
}

static enum fr_unwind_kind kind_of(const struct cfi_state *s)
{
	switch ((enum cfi_form)s->cfa.form) {
	case CFI_REGISTER:
		return FR_UNWIND_REGISTER;
	case CFI_DEREFERENCE:
		return is_realigned(s) ? FR_UNWIND_REALIGNED : FR_UNWIND_DEREFERENCE;
	case CFI_PLT:
		return FR_UNWIND_PLT;
	default:
		return FR_UNWIND_NONE;
	}
}

bool unwind_rule_make(const struct cfi_cie *cie, const struct cfi_state *s, struct fr_unwind_rule *ret)
{
	const struct cfi_register *ra = &s->regs[CFI_SLOT_RETURN_ADDRESS];
	enum fr_unwind_kind kind = kind_of(s);

	memset(ret, 0, sizeof(*ret));
	if (ra->how == CFI_UNDEFINED) {
		ret->kind = FR_UNWIND_END;
		return true;
	}
	if (is_signal_frame(cie, s)) {
		ret->kind = FR_UNWIND_SIGNAL;
		return true;
	}
	/* The stack pointer of the caller is the CFA, unless there is a rule that says otherwise. */
	if (kind == FR_UNWIND_NONE || ra->how != CFI_AT_CFA || ra->offset != (int16_t)ra->offset ||
		s->regs[CFI_SLOT_STACK_POINTER].how != CFI_UNSPECIFIED)
		return false;
	ret->kind = (uint8_t)kind;
	ret->reg = s->cfa.reg;
	ret->ra = (int16_t)ra->offset;
	ret->cfa_offset = s->cfa.offset;
	ret->add = s->cfa.add;
	for (unsigned i = 0; i < FR_UNWIND_SAVED; i++)
		ret->saved[i] = kind == FR_UNWIND_REALIGNED ? saved_in_realigned(&s->regs[i], &s->cfa)
							    : saved_at(&s->regs[i], &s->cfa);
	return true;
}
