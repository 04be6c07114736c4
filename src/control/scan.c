// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One pass over a message before the parser: the parser recurses per level of nesting, takes any byte in a
 * string, and ends a string at \u0000. What it would let through ends up in logs, in file names of a terminal
 * and in JSON that others read.
 */
#include "control/wire.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdint.h>

/* A string from its opening quote on; the number of bytes with both quotes, or 0. */
static size_t scan_string(const uint8_t *s, size_t len, struct fr_diag *d)
{
	size_t i = 1;

	while (i < len && s[i] != '"') {
		size_t n;

		if (s[i] < 0x20) {
			fr_fail(d, -EBADMSG, NULL, "a raw control character in a string");
			return 0;
		}
		if (s[i] == '\\') {
			if (len - i >= 6 && s[i + 1] == 'u' && s[i + 2] == '0' && s[i + 3] == '0' &&
				s[i + 4] == '0' && s[i + 5] == '0') {
				fr_fail(d, -EBADMSG, NULL, "\\u0000 in a string");
				return 0;
			}
			i++;
			if (i == len)
				break;
		}
		n = fr_utf8_sequence(s + i, len - i);
		if (n == 0) {
			fr_fail(d, -EBADMSG, NULL, "a string is not UTF-8");
			return 0;
		}
		i += n;
	}
	if (i >= len) {
		fr_fail(d, -EBADMSG, NULL, "a string does not end");
		return 0;
	}
	return i + 1;
}

int fr_wire_scan(const char *text, size_t len, struct fr_diag *d)
{
	const uint8_t *s = (const uint8_t *)text;
	unsigned depth = 0;
	size_t i = 0;

	while (i < len) {
		size_t n = 1;

		switch (s[i]) {
		case '"':
			n = scan_string(s + i, len - i, d);
			if (n == 0)
				return -EBADMSG;
			break;
		case '{':
		case '[':
			if (++depth > FR_WIRE_MAX_DEPTH)
				return fr_fail(
					d, -EBADMSG, NULL, "nested deeper than %u levels", FR_WIRE_MAX_DEPTH);
			break;
		case '}':
		case ']':
			if (depth-- == 0)
				return fr_fail(d, -EBADMSG, NULL, "a bracket closes that was never opened");
			break;
		default:
			if (s[i] >= 0x80 || s[i] == '\0')
				return fr_fail(d, -EBADMSG, NULL, "a byte that is no JSON: 0x%02x", s[i]);
		}
		i += n;
	}
	return 0;
}
