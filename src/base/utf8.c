// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/utf8.h"

#include <string.h>

size_t fr_utf8_sequence(const uint8_t *s, size_t len)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
	uint32_t c;

	if (n <= 1)
		return n;
	if (n > len || s[0] > 0xf7)
		return 0;
	c = s[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : n;
}

/* The control characters U+0080 to U+009F have two bytes. */
size_t fr_utf8_printable(const uint8_t *s, size_t len)
{
	const size_t n = fr_utf8_sequence(s, len);
	const int is_control = *s < ' ' || *s == 0x7f || (n == 2 && *s == 0xc2 && s[1] < 0xa0);

	return is_control ? 0 : n;
}

void fr_utf8_sanitize(char *text)
{
	uint8_t *s = (uint8_t *)text;
	size_t n, len = strlen(text);

	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = fr_utf8_printable(s + i, len - i);
		if (!n)
			s[i] = s[i] >= '\t' && s[i] <= '\r' ? ' ' : '?';
	}
}
