/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Checks text from outside before it gets into logs, JSON and terminals. */

#include <stddef.h>
#include <stdint.h>

/* Returns the length of the UTF-8 sequence at S, which has LEN ≥ 1 bytes, or 0 if it is invalid (RFC 3629:
   not the shortest form, a surrogate, or above U+10FFFF). */
size_t fr_utf8_sequence(const uint8_t *s, size_t len);

/* Returns the same, but 0 also for a control character, which terminals obey. */
size_t fr_utf8_printable(const uint8_t *s, size_t len);

/* Replaces white space by blanks, and each byte of invalid UTF-8 and of other control characters by '?'. */
void fr_utf8_sanitize(char *text);
