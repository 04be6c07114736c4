/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Rules of a table, from the states of call frame information. Only files of unwind/ include this header. */

#include "unwind/cfi_program.h"

/* Makes the rule of state S. Returns false if a rule cannot express S. */
bool unwind_rule_make(const struct cfi_cie *cie, const struct cfi_state *s, struct fr_unwind_rule *ret);
