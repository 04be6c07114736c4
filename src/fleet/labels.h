/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Labels of a machine ("role=db,zone=a") and selectors that choose machines by their labels ("role=db",
   "role=db,zone!=b", "name=web-*"; "" or "*" chooses all). All conditions of a selector must hold. A value of
   a selector may be a pattern with * and ?. The label "name" is always there: the name of the machine. */

#include "base/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#define FR_LABELS_MAX 32u
#define FR_LABEL_SIZE 64u     /* a name or a value, with its NUL: letters, digits and "-_./" */
#define FR_SELECTOR_SIZE 512u /* the text of a selector, with its NUL */

struct fr_labels {
	size_t n;
	struct {
		char name[FR_LABEL_SIZE], value[FR_LABEL_SIZE];
	} v[FR_LABELS_MAX]; /* sorted by name; no name twice */
};

/* Parses "a=b,c=d" (blanks around the parts are ignored; "" has no labels). Returns 0; or -EINVAL with a
   message in D. */
int fr_labels_parse(const char *text, struct fr_labels *ret, struct fr_diag *d);
/* Reads the JSON object {"a": "b"}. Returns 0; or -EINVAL. */
int fr_labels_from_json(const cJSON *object, struct fr_labels *ret);
/* Returns {"a": "b"}; the caller owns it. NULL: no memory. */
cJSON *fr_labels_json(const struct fr_labels *l);
/* Writes "a=b,c=d" into RET, cut to SIZE. */
void fr_labels_text(const struct fr_labels *l, char *ret, size_t size);

/* Checks a selector. Returns 0; or -EINVAL with a message in D. */
int fr_selector_check(const char *selector, struct fr_diag *d);
/* Writes the selector in one form: sorted, without blanks, "*" for all; so equal selectors have equal texts.
   SELECTOR is valid. */
void fr_selector_normalize(const char *selector, char ret[FR_SELECTOR_SIZE]);
/* Returns whether the valid SELECTOR chooses the machine NAME with the labels L. */
bool fr_selector_matches(const char *selector, const char *name, const struct fr_labels *l);
