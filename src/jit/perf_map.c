// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The end of the user's half of the address space, on any machine. */
#define ADDRESS_MAX (1ULL << 56)

struct cursor {
	const char *at, *end;
};

static bool hex(struct cursor *c, uint64_t *ret)
{
	const char *begin;
	uint64_t v = 0;

	if (c->end - c->at >= 2 && c->at[0] == '0' && (c->at[1] | 0x20) == 'x')
		c->at += 2;
	for (begin = c->at; c->at < c->end && c->at - begin < 16; c->at++) {
		char low = (char)(*c->at | 0x20);

		if (*c->at >= '0' && *c->at <= '9')
			v = v << 4 | (uint64_t)(*c->at - '0');
		else if (low >= 'a' && low <= 'f')
			v = v << 4 | (uint64_t)(low - 'a' + 10);
		else
			break;
	}
	if (c->at == begin || c->at == c->end || *c->at != ' ')
		return false;
	c->at++;
	*ret = v;
	return true;
}

static int parse_line(const char *line, size_t len, struct jit_code *to)
{
	struct cursor c = {line, line + len};
	struct jit_symbol s = {0};

	if (!hex(&c, &s.addr) || !hex(&c, &s.size) || c.at == c.end || s.size == 0 || s.addr >= ADDRESS_MAX ||
		s.size >= ADDRESS_MAX - s.addr || memchr(c.at, '\0', (size_t)(c.end - c.at)))
		return 0;
	return jit_code_add(to, &s, c.at, (size_t)(c.end - c.at));
}

static int by_address(const void *a, const void *b)
{
	const struct jit_symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Code is thrown away and its memory used again, and nothing in the file says so but the later line. */
static void resolve_overlaps(struct jit_code *c)
{
	size_t kept = 0;

	qsort(c->v, c->n, sizeof(*c->v), by_address);
	for (size_t i = 0; i < c->n; i++) {
		struct jit_symbol s = c->v[i], *last = kept ? &c->v[kept - 1] : NULL;

		if (last && last->addr + last->size > s.addr) {
			uint64_t end = last->addr + last->size;

			if (s.order > last->order && s.addr == last->addr) {
				kept--;
			} else if (s.order > last->order) {
				last->size = s.addr - last->addr;
			} else if (s.addr + s.size <= end) {
				continue;
			} else {
				s.size -= end - s.addr;
				s.addr = end;
			}
		}
		c->v[kept++] = s;
	}
	c->n = kept;
}

int jit_perf_map_parse(const char *text, size_t len, struct jit_code *ret)
{
	struct jit_code c = {0};
	int r = 0;

	while (len > 0 && r == 0) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) : len;

		/* A last line without its end is still being written. */
		if (newline)
			r = parse_line(text, line, &c);
		line += newline != NULL;
		text += line;
		len -= line;
	}
	if (r < 0) {
		jit_code_deinit(&c);
		return r;
	}
	if (c.n > 0)
		resolve_overlaps(&c);
	*ret = c;
	return 0;
}
