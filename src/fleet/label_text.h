/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What labels and selectors share: lists of parts with commas, and the characters of the parts. */

#include <stdbool.h>
#include <stddef.h>

struct fr_label_part {
	const char *s;
	size_t n;
};

/* Takes the next part of the list at *TEXT, up to the next comma, without the blanks around it. Returns false
   at the end of the list. A list that is empty or blank has no parts; "a," has two. *TEXT is NULL after the
   last part. */
bool fr_label_part_next(const char **text, struct fr_label_part *ret);
/* Removes the blanks at both ends. */
struct fr_label_part fr_label_part_strip(struct fr_label_part p);
/* Returns whether the part has 1 to MAX letters, digits and "-_./", or characters of MORE. */
bool fr_label_part_is_valid(struct fr_label_part p, size_t max, const char *more);
