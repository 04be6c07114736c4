// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as a program, and looks for a function or a USDT marker in it. The result is a reason for a
   refusal, or an offset that the kernel accepts. The seeds were made from a few lines of assembler with a
   static and a global function, an IFUNC and a note of <sys/sdt.h>, by `as` and `ld -shared --build-id -z
   noseparate-code`. One seed is the complete file, one is truncated, and one is stripped and has a
   .gnu_debuglink. */

#include "fuzz.h"
#include "source/elf_symbol.h"

static void check_outcome(int r, uint64_t offset, const struct fr_diag *d)
{
	check(r < 0 ? d->code == r && d->what[0] : offset <= INT64_MAX);
}

static void look_up(struct fr_elf *e)
{
	static const char *const names[] = {
		"f", "f+0x1", "twice", "twice@a.c", "chosen", "imported", "nothing"};
	struct fr_elf_marker markers[FR_ELF_MARKERS_MAX];
	struct fr_diag d;
	int r;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct fr_elf_symbol s = {0};

		d = (struct fr_diag){0};
		r = fr_elf_find_symbol(e, names[i], &s, &d);
		check_outcome(r, s.offset, &d);
	}
	d = (struct fr_diag){0};
	r = fr_elf_find_markers(e, "p", "m", markers, &d);
	check_outcome(r, 0, &d);
	for (int i = 0; i < r; i++)
		check_outcome(0, markers[i].offset | markers[i].semaphore, &d);
	(void)fr_elf_is_go(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fr_elf *e = NULL;
	struct fr_diag d = {0};
	int r = fr_elf_open_fd(make_memfd(data, size), "/nonexistent/fuzz", 0, "/nonexistent", &e, &d);

	check_outcome(r, 0, &d);
	if (r == 0)
		look_up(e);
	fr_elf_free(e);
	return 0;
}
