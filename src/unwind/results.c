// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/results.h"

#include <stddef.h>

static const struct {
	const char *name, *explanation;
} results[_FR_UNWIND_RESULTS] = {
	[FR_UNWIND_WHOLE] = {"whole", "reached the start of the program or thread"},
	[FR_UNWIND_TOO_DEEP] = {"too-deep", "more frames than max-stack"},
	[FR_UNWIND_NO_PROCESS] = {"no-process",
		"the maps of the process were not known yet: frame pointers were used"},
	[FR_UNWIND_CHANGED] = {"changed",
		"the process had just changed its maps: frame pointers were used in part of the stack"},
	[FR_UNWIND_NO_TABLE] = {"no-table",
		"a file had no table yet: frame pointers were used in part of the stack"},
	[FR_UNWIND_NO_RULE] = {"no-rule", "code without call frame information"},
	[FR_UNWIND_UNREADABLE] = {"unreadable", "a page of the stack was not in memory"},
	[FR_UNWIND_NO_MAP] = {"no-map", "an address that is not code"},
	[FR_UNWIND_COMPAT] = {"32-bit", "a 32-bit process: only the innermost frame is recorded"},
	[FR_UNWIND_TOO_LATE] = {"too-late",
		"a sample of offcpu without a user stack: its task had left the CPU before the walk"},
};

const char *fr_unwind_result_name(enum fr_unwind_result result)
{
	return (unsigned)result < _FR_UNWIND_RESULTS ? results[result].name : NULL;
}

const char *fr_unwind_result_explain(enum fr_unwind_result result)
{
	return (unsigned)result < _FR_UNWIND_RESULTS ? results[result].explanation : NULL;
}
