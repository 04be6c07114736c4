/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the name that a person may have meant. */

#include <stddef.h>

/* Edits (insert, delete, replace, swap of neighbours) from A to B, letter case aside, or LIMIT + 1 where
   there are more. */
unsigned fr_edit_distance(const char *a, const char *b, unsigned limit);

/* The nearest of N names to WORD, within a third of its length, or NULL. */
const char *fr_nearest_name(
	const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx, size_t n);
