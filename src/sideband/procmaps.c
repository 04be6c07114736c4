// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/procmaps.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

struct cursor {
	char *at, *end;
};

/* A number in BASE, at least a digit, that fits 64 bits; then the character AFTER. */
static bool number(struct cursor *c, unsigned base, char after, uint64_t *ret)
{
	uint64_t v = 0;
	char *begin = c->at;

	for (; c->at < c->end; c->at++) {
		unsigned digit;

		if (*c->at >= '0' && *c->at <= '9')
			digit = (unsigned)(*c->at - '0');
		else if (base == 16 && *c->at >= 'a' && *c->at <= 'f')
			digit = (unsigned)(*c->at - 'a') + 10;
		else
			break;
		if (v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	if (c->at == begin)
		return false;
	*ret = v;
	if (!after)
		return true;
	if (c->at == c->end || *c->at != after)
		return false;
	c->at++;
	return true;
}

static bool permissions(struct cursor *c, struct fr_procmap *m)
{
	const char *p = c->at;

	if (c->end - c->at < 5 || p[4] != ' ' || (p[3] != 'p' && p[3] != 's'))
		return false;
	m->prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
		  (p[2] == 'x' ? PROT_EXEC : 0);
	m->flags = p[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	c->at += 5;
	return true;
}

/* The kernel writes a newline in a name as \012 and nothing else in another way. */
static size_t unescape(char *name, size_t len)
{
	size_t out = 0;

	for (size_t i = 0; i < len; out++) {
		if (len - i >= 4 && !memcmp(name + i, "\\012", 4)) {
			name[out] = '\n';
			i += 4;
		} else {
			name[out] = name[i++];
		}
	}
	return out;
}

int fr_procmap_parse(char *line, size_t len, struct fr_procmap *ret)
{
	struct cursor c = {line, line + len};
	struct fr_procmap m = {0};
	uint64_t maj, min;

	if (!number(&c, 16, '-', &m.start) || !number(&c, 16, ' ', &m.end) || m.end <= m.start)
		return -EINVAL;
	if (!permissions(&c, &m))
		return -EINVAL;
	if (!number(&c, 16, ' ', &m.pgoff) || !number(&c, 16, ':', &maj) || !number(&c, 16, ' ', &min) ||
		!number(&c, 10, '\0', &m.ino) || maj > UINT32_MAX || min > UINT32_MAX)
		return -EINVAL;
	if (c.at < c.end && *c.at != ' ')
		return -EINVAL;
	while (c.at < c.end && *c.at == ' ')
		c.at++;
	if (memchr(c.at, '\0', (size_t)(c.end - c.at)))
		return -EINVAL;
	m.maj = (uint32_t)maj;
	m.min = (uint32_t)min;
	m.name = c.at;
	m.name_len = unescape(c.at, (size_t)(c.end - c.at));
	*ret = m;
	return 0;
}
