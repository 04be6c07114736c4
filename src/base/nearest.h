/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the name that a person probably meant. */

#include <stddef.h>

/* Returns the smallest number of edits (insert, delete, replace, swap of neighbors) that turn A into B, or
   LIMIT + 1 if that number is above LIMIT. Ignores the letter case, except in a swap. */
unsigned fr_edit_distance(const char *a, const char *b, unsigned limit);

/* The parameter `name` is a function that returns the name with the index I, which is below N. Returns the
   name that needs the fewest edits from WORD; or NULL if each name needs more than strlen(WORD) / 3 + 1
   edits. */
const char *fr_nearest_name(
	const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx, size_t n);
