// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as an object file: reads its symbols, and the inlined functions at some of their addresses.
   Any user can make such a file, and root reads its names. */

#include "fuzz.h"
#include "report/debuginfod.h"
#include "report/elf.h"

#define ADDRESSES 200 /* that are looked up */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fr_symbols s = {0};
	const char *names[8];
	struct fr_elf *e;
	int n;

	fr_debuginfod_disable();
	if (fr_elf_open(make_memfd(data, size), "fuzz", NULL, NULL, &e) < 0)
		return 0;
	check(fr_elf_add_symbols(e, &s) == 0);
	fr_symbols_finish(&s, false);
	for (size_t i = 0; i < s.n; i++) {
		check(s.v[i].start < s.v[i].end && (i == 0 || s.v[i - 1].start < s.v[i].start));
		check(fr_symbols_find(&s, s.v[i].start) == &s.v[i]);
	}
	for (size_t i = 0; i < s.n && i < ADDRESSES; i++) {
		n = fr_elf_find_inlined(e, s.v[i].start, names, 8);
		check(n >= 0 && n <= 8);
		for (int k = 0; k < n; k++)
			check(strlen(names[k]) < size);
	}
	fr_symbols_deinit(&s);
	fr_elf_free(e);
	return 0;
}
