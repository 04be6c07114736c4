// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/nearest.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define LENGTH_MAX 128

/* The optimal string alignment distance. Only the last three rows of its matrix are kept. */
unsigned fr_edit_distance(const char *a, const char *b, unsigned limit)
{
	unsigned rows[3][LENGTH_MAX + 1], *two_up = rows[0], *up = rows[1], *row = rows[2];
	size_t la = strlen(a), lb = strlen(b);

	if (la > LENGTH_MAX || lb > LENGTH_MAX || (la > lb ? la - lb : lb - la) > limit)
		return limit + 1;
	for (size_t j = 0; j <= lb; j++)
		up[j] = j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *spare = two_up;

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);

			row[j] = FR_MIN(FR_MIN(up[j] + 1, row[j - 1] + 1), up[j - 1] + !same);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = FR_MIN(row[j], two_up[j - 2] + 1);
		}
		two_up = up;
		up = row;
		row = spare;
	}
	return FR_MIN(up[lb], limit + 1);
}

const char *fr_nearest_name(
	const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx, size_t n)
{
	unsigned best = (unsigned)strlen(word) / 3 + 1;
	const char *ret = NULL;

	for (size_t i = 0; i < n; i++) {
		unsigned x = fr_edit_distance(word, name(ctx, i), best);

		if (x < best || (x == best && !ret)) {
			best = x;
			ret = name(ctx, i);
		}
	}
	return ret;
}
