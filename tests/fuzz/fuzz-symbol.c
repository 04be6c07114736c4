// SPDX-License-Identifier: GPL-2.0-or-later

/* Any bytes as a program of which a function or a marker is to be probed: refused in words, or a place that
   the kernel can be asked for. Seeds: `as`, `ld -shared --build-id -z noseparate-code` of a few lines with a
   static and a global function, an IFUNC and a note of <sys/sdt.h>; whole, and stripped with a
   .gnu_debuglink. */

#include "source/elf_symbol.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int r, uint64_t offset, const struct fr_diag *d)
{
	if (r < 0 ? d->code != r || !d->what[0] : offset > INT64_MAX)
		abort();
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
		check(r, s.offset, &d);
	}
	d = (struct fr_diag){0};
	r = fr_elf_find_markers(e, "p", "m", markers, &d);
	check(r, 0, &d);
	for (int i = 0; i < r; i++)
		check(0, markers[i].offset | markers[i].semaphore, &d);
	(void)fr_elf_is_go(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int r, fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct fr_elf *e = NULL;
	struct fr_diag d = {0};

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	r = fr_elf_open_fd(fd, "/nonexistent/fuzz", 0, "/nonexistent", &e, &d);
	check(r, 0, &d);
	if (r == 0)
		look_up(e);
	fr_elf_free(e);
	return 0;
}
