// SPDX-License-Identifier: GPL-2.0-or-later
#include "objects/vdso.h"
#include "perfdata/features.h"

#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

int fr_vdso_find(const void **ret, size_t *ret_size, uint8_t ret_id[static 20])
{
	const uint8_t *base =
		(const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT(performance-no-int-to-ptr) */
	const ElfW(Ehdr) *e = (const void *)base;
	const ElfW(Phdr) *p = base ? (const void *)(base + e->e_phoff) : NULL;

	for (unsigned i = 0; p && e->e_shoff && i < e->e_phnum; i++) {
		int n = -ENOENT;

		if (p[i].p_type == PT_NOTE)
			n = fr_build_id_from_notes(base + p[i].p_offset, p[i].p_filesz, 4, ret_id);
		if (n <= 0)
			continue;
		*ret = base;
		/* The section headers are the last part of the vdso, so its size is where they end. */
		*ret_size = e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
		return n;
	}
	return -ENOENT;
}
