// SPDX-License-Identifier: GPL-2.0-or-later
#include "objects/vdso.h"
#include "base/cleanup.h"
#include "perfdata/features.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* The end of our map that begins at START; 0: there is none. */
static uintptr_t map_end(uintptr_t start)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;

	while (f && getline(&line, &cap, f) > 0) {
		char *dash;

		if (strtoull(line, &dash, 16) == start && *dash == '-')
			return strtoull(dash + 1, NULL, 16);
	}
	return 0;
}

int fr_vdso_find(const void **ret, size_t *ret_size, uint8_t ret_id[static 20])
{
	const uintptr_t start = getauxval(AT_SYSINFO_EHDR), end = start ? map_end(start) : 0;
	const uint8_t *base = (const void *)start; /* NOLINT(performance-no-int-to-ptr) */
	const ElfW(Ehdr) *e = (const void *)base;
	const ElfW(Phdr) *p = end ? (const void *)(base + e->e_phoff) : NULL;

	for (unsigned i = 0; p && i < e->e_phnum; i++) {
		int n = -ENOENT;

		if (p[i].p_type == PT_NOTE)
			n = fr_build_id_from_notes(base + p[i].p_offset, p[i].p_filesz, 4, ret_id);
		if (n <= 0)
			continue;
		*ret = base;
		*ret_size = end - start;
		return n;
	}
	return -ENOENT;
}
