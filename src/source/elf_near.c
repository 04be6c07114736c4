// SPDX-License-Identifier: GPL-2.0-or-later
/* Near misses of a symbol or a marker. */
#include "source/elf_internal.h"
#include "base/cleanup.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#define LENGTH_MAX 120

/* A name that contains the wanted one is near however long it is: C++ names are mangled around what a person
   knows, and the compiler adds .isra.0 and the like. */
static unsigned rank_of(const struct elf_near *n, const char *name, size_t len)
{
	size_t wanted = strlen(n->wanted);
	unsigned limit = wanted < 4 ? 1 : FR_MIN(FR_MAX(2u, (unsigned)wanted / 4), 8u), distance;

	if (wanted >= 3 && strstr(name, n->wanted))
		distance = 1;
	else
		distance = fr_edit_distance(n->wanted, name, limit);
	return distance > limit ? UINT32_MAX : distance * 2 * LENGTH_MAX + (unsigned)len;
}

void elf_near_consider(struct elf_near *n, const char *name)
{
	size_t len = strnlen(name, LENGTH_MAX + 1), at;
	unsigned rank;

	if (len == 0 || len > LENGTH_MAX)
		return;
	rank = rank_of(n, name, len);
	if (rank == UINT32_MAX)
		return;
	for (at = 0; at < n->n; at++)
		if (!strcmp(n->best[at].name, name))
			return;
	for (at = n->n; at > 0 && n->best[at - 1].rank > rank; at--)
		if (at < FR_ARRAY_SIZE(n->best))
			n->best[at] = n->best[at - 1];
	if (at == FR_ARRAY_SIZE(n->best))
		return;
	n->best[at].name = name;
	n->best[at].rank = rank;
	n->n = FR_MIN(n->n + 1, FR_ARRAY_SIZE(n->best));
}

const char *elf_near_text(const struct elf_near *n, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < n->n && len < size; i++)
		len += (size_t)snprintf(ret + len, size - len, "%s%s",
			i == 0		? "did you mean "
			: i + 1 == n->n ? " or "
					: ", ",
			n->best[i].name);
	if (n->n && len < size)
		snprintf(ret + len, size - len, "?");
	return ret;
}
