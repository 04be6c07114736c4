/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Text of strangers, before it gets into logs, JSON and terminals. */

#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 sequence at S (LEN ≥ 1 bytes are there; RFC 3629: shortest form, no surrogates, up
   to U+10FFFF), or 0. */
size_t fr_utf8_sequence(const uint8_t *s, size_t len);

/* What may not be shown, in place: bytes that are no UTF-8 (a name is cut within a character, or was never
   text) and control characters, which terminals obey, become '?' each; white space becomes a blank. */
void fr_utf8_sanitize(char *text);
