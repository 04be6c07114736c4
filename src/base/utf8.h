/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Checks text from outside before it gets into logs, JSON and terminals. */

#include <stddef.h>
#include <stdint.h>

/* Returns the length of the UTF-8 sequence at the start of S. S has LEN bytes, at least 1. Returns 0 if the
   sequence is invalid by RFC 3629 (also if it is not the shortest form, a surrogate, or above U+10FFFF). */
size_t fr_utf8_sequence(const uint8_t *s, size_t len);

/* Returns the same as fr_utf8_sequence(), but 0 for a control character, because terminals obey it. */
size_t fr_utf8_printable(const uint8_t *s, size_t len);

/* Replaces white space by blanks, and each byte of invalid UTF-8 and of other control characters by '?'. */
void fr_utf8_sanitize(char *text);
