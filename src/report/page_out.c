// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/page_out.h"
#include "base/utf8.h"
#include "report/json_out.h"

#include <string.h>

void fr_page_html(FILE *out, const char *text)
{
	while (*text) {
		const size_t n = fr_utf8_printable((const uint8_t *)text, strlen(text));

		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '"')
			fputs("&quot;", out);
		else if (n > 0 || *text == '\n')
			fwrite(text, 1, n > 0 ? n : 1, out);
		else
			fputs("\xef\xbf\xbd", out);
		text += n > 0 ? n : 1;
	}
}

void fr_page_name(FILE *out, const char *name, size_t len)
{
	char text[FR_PAGE_NAME_MAX + 4];
	size_t n = len < FR_PAGE_NAME_MAX ? len : FR_PAGE_NAME_MAX;

	/* Do not cut a character. */
	while (n < len && n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
		n--;
	memcpy(text, name, n);
	strcpy(text + n, n < len ? "…" : "");
	fr_json_out_text(out, text);
}

void fr_page_base64(FILE *out, const void *data, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i += 3) {
		const uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0) |
				   (i + 2 < len ? p[i + 2] : 0u);

		fputc(digits[v >> 18], out);
		fputc(digits[v >> 12 & 63], out);
		fputc(i + 1 < len ? digits[v >> 6 & 63] : '=', out);
		fputc(i + 2 < len ? digits[v & 63] : '=', out);
	}
}
