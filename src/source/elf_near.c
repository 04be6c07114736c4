// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the symbol or static marker (USDT) with the most similar name, for a message about a wrong name. */
#include "source/elf_symbol_private.h"
#include "base/cleanup.h"
#include "base/nearest.h"

#include <string.h>

/* Returns the rank of NAME: the edit distance from WANTED counts first, then the length of NAME. A lower rank
   is more similar; UINT32_MAX means that NAME is too different. A longer name that contains WANTED has the
   distance 1, because C++ mangles names and compilers append suffixes like .isra.0. */
static unsigned rank_name(const char *wanted, const char *name, size_t len)
{
	const size_t n = strlen(wanted);
	const unsigned limit = n < 4 ? 1 : FR_MIN(FR_MAX(2u, (unsigned)n / 4), 8u);
	const unsigned distance = n >= 3 && strstr(name, wanted) ? 1 : fr_edit_distance(wanted, name, limit);

	return distance > limit ? UINT32_MAX : distance * 2 * ELF_NEAR_SIZE + (unsigned)len;
}

void elf_near_consider(struct elf_near *near, const char *name)
{
	const size_t len = strnlen(name, ELF_NEAR_SIZE);
	unsigned rank;

	if (len == 0 || len == ELF_NEAR_SIZE)
		return;
	rank = rank_name(near->wanted, name, len);
	if (rank == UINT32_MAX || (near->name[0] && rank >= near->rank))
		return;
	near->rank = rank;
	memcpy(near->name, name, len + 1);
}
