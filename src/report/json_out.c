// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/json_out.h"
#include "base/utf8.h"

#include <string.h>

void fr_json_out_text(FILE *out, const char *text)
{
	fputc('"', out);
	while (*text) {
		const unsigned char c = (unsigned char)*text;
		const size_t n = c < 0x80 ? 1 : fr_utf8_sequence((const uint8_t *)text, strlen(text));

		if (n == 0) {
			fputs("\xef\xbf\xbd", out);
			text++;
			continue;
		}
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == '<' || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fwrite(text, 1, n, out);
		text += n;
	}
	fputc('"', out);
}
