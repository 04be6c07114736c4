/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the name that a person probably meant. */

#include <stddef.h>

/* Returns how many edits (insert, delete, replace, swap of neighbors) turn A into B, whatever their letter
   case, or LIMIT + 1 if there are more. */
unsigned fr_edit_distance(const char *a, const char *b, unsigned limit);

/* Returns the nearest of N names to WORD, or NULL. It needs at most len(WORD) / 3 + 1 edits. */
const char *fr_nearest_name(
	const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx, size_t n);
