// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as an ELF object, in memory and in a file, and as the content of .eh_frame and .debug_frame.
   Each has a well-formed table, or none. Memory and file have the same table. */

#include "fuzz.h"
#include "unwind/table.h"
#include "unwind/table_build.h"

#include <errno.h>

static void check_table(const struct fr_unwind_table *t)
{
	size_t n = 0;

	check(t->n_rules >= 1 && t->n_rules <= FR_UNWIND_RULES_MAX && t->rules[0].kind == FR_UNWIND_NONE);
	for (uint32_t i = 0; i < t->n_rules; i++)
		check(t->rules[i].kind <= FR_UNWIND_SIGNAL && t->rules[i].reg < 16);
	check(t->n_pages <= FR_UNWIND_CHUNK_BYTES / sizeof(struct fr_unwind_page));
	for (uint32_t i = 0; i < t->n_pages; i++) {
		const struct fr_unwind_row *rows = t->rows + t->pages[i].first_row;

		check(t->pages[i].first_row == n);
		n += t->pages[i].n_rows;
		for (uint32_t j = 0; j < t->pages[i].n_rows; j++)
			check((j == 0 ? rows[j].pc == 0 : rows[j].pc > rows[j - 1].pc) &&
				rows[j].rule < t->n_rules);
	}
	check(n > 0 && n == t->n_rows);
}

static void use_section(const uint8_t *data, size_t size, bool is_debug)
{
	static const struct cfi_range code = {0, 1ULL << 32};
	struct cfi_section s = {.data = data, .len = size, .address = 1 << 20, .is_debug = is_debug};
	struct cfi_entries e;
	struct fr_unwind_table t;
	int r = cfi_scan(&s, &code, 1, &e);

	check(r == 0);
	for (size_t i = 0; i < e.n_fdes; i++) {
		check(e.fdes[i].begin < e.fdes[i].end && e.fdes[i].end <= code.end);
		check(i == 0 || e.fdes[i - 1].end <= e.fdes[i].begin);
		check(e.fdes[i].cie < e.n_cies && e.cies[e.fdes[i].cie].is_supported);
	}
	r = unwind_table_build(&e, &t);
	check(r == 0 || r == 1);
	if (r == 0) {
		check_table(&t);
		fr_unwind_table_deinit(&t);
	}
	cfi_entries_deinit(&e);
}

static void use_object(const uint8_t *data, size_t size)
{
	struct fr_unwind_table a, b;
	int r = fr_unwind_table_read_image(data, size, &a), fd;

	check(r == 0 || r == 1 || r == -ENOEXEC || r == -E2BIG);
	if (r != 0)
		return;
	check_table(&a);
	fd = make_memfd(data, size);
	check(fr_unwind_table_read(fd, fd, &b) == 0);
	check_table(&b);
	check(a.n_rows == b.n_rows && memcmp(a.rows, b.rows, a.n_rows * sizeof(*a.rows)) == 0);
	fr_unwind_table_deinit(&a);
	fr_unwind_table_deinit(&b);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	use_object(data, size);
	use_section(data, size, false);
	use_section(data, size, true);
	return 0;
}
