/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The rows, rules and pages of a table. Only files of unwind/ include this header. */

#include "unwind/table.h"
#include "unwind/cfi_scan.h"

/* Makes the table of all entries. Returns 0; 1 if no address has a rule; -E2BIG or -ENOMEM. */
int unwind_table_build(const struct cfi_entries *e, struct fr_unwind_table *ret);
