/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the name that a person probably meant. */

#include <stddef.h>

/* Returns how many edits (insert, delete, replace, swap of neighbors) turn A into B, or LIMIT + 1 if there
   are more. Ignores the letter case. */
unsigned fr_edit_distance(const char *a, const char *b, unsigned limit);

/* Returns the name that is nearest to WORD, of the N names that NAME returns for CTX. Returns NULL if each of
   them needs more than strlen(WORD) / 3 + 1 edits. */
const char *fr_nearest_name(
	const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx, size_t n);
