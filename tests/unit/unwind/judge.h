/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Compares an unwind table with the answers of libdw, which reads call frame information without our code. */

#include "unwind/table.h"

#include <elfutils/libdw.h>

/* Compares each address where the table or libdw changes the rule. Also compares addresses in no order,
   N_RANDOM of them. Returns the number of addresses that were compared. Fails the test at a difference. */
size_t judge_table(const struct fr_unwind_table *t, Dwarf_CFI *cfi, unsigned n_random);
