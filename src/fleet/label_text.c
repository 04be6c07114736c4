// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/label_text.h"

#include <string.h>

#define BLANKS " \t\r\n"

struct fr_label_part fr_label_part_strip(struct fr_label_part p)
{
	while (p.n > 0 && strchr(BLANKS, p.s[0])) {
		p.s++;
		p.n--;
	}
	while (p.n > 0 && strchr(BLANKS, p.s[p.n - 1]))
		p.n--;
	return p;
}

bool fr_label_part_next(const char **text, struct fr_label_part *ret)
{
	const char *s = *text;
	size_t n;

	if (!s)
		return false;
	n = strcspn(s, ",");
	*ret = fr_label_part_strip((struct fr_label_part){s, n});
	*text = s[n] ? s + n + 1 : NULL;
	return true;
}

bool fr_label_part_is_valid(struct fr_label_part p, size_t max, const char *more)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";

	for (size_t i = 0; i < p.n; i++)
		if (!p.s[i] || (!strchr(characters, p.s[i]) && !strchr(more, p.s[i])))
			return false;
	return p.n > 0 && p.n <= max;
}
