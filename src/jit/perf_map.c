// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/code.h"
#include "base/cleanup.h"

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

/* Functions that have begun and not ended at an address, as a heap: the one of the latest line is the first.
 */
struct heap {
	const struct jit_symbol *v;
	uint32_t *index;
	size_t n;
};

static bool is_later(const struct heap *h, size_t a, size_t b)
{
	return h->v[h->index[a]].order > h->v[h->index[b]].order;
}

static void swap(struct heap *h, size_t a, size_t b)
{
	const uint32_t i = h->index[a];

	h->index[a] = h->index[b];
	h->index[b] = i;
}

static void push(struct heap *h, size_t i)
{
	size_t at = h->n++;

	h->index[at] = (uint32_t)i;
	for (; at > 0 && is_later(h, at, (at - 1) / 2); at = (at - 1) / 2)
		swap(h, at, (at - 1) / 2);
}

static void pop(struct heap *h)
{
	size_t at = 0;

	swap(h, 0, --h->n);
	for (;;) {
		size_t down = 2 * at + 1;

		if (down + 1 < h->n && is_later(h, down + 1, down))
			down++;
		if (down >= h->n || !is_later(h, down, at))
			return;
		swap(h, at, down);
		at = down;
	}
}

/* S from FROM to TO, as a piece of its own unless it goes on from the last one. */
static void add_piece(struct jit_code *c, const struct jit_symbol *s, uint64_t from, uint64_t to)
{
	struct jit_symbol *last = c->n ? &c->v[c->n - 1] : NULL;

	if (last && last->order == s->order && last->addr + last->size == from) {
		last->size += to - from;
	} else if (c->n == c->cap) {
		c->cut = true;
	} else {
		c->v[c->n] = *s;
		c->v[c->n].addr = from;
		c->v[c->n++].size = to - from;
	}
}

/*
 * Code is thrown away and its memory used again, and nothing in the file says so but the later line. What is
 * left of an earlier function may be in pieces.
 *
 *     line 1   ├────────────────┤              1111 3 1 222
 *     line 2               ├────────┤    ──►
 *     line 3       ├─┤
 */
static int resolve_overlaps(struct jit_code *c)
{
	const size_t n = c->n;
	_cleanup_free_ struct jit_symbol *v = c->v;
	_cleanup_free_ uint32_t *index = calloc(n, sizeof(*index));
	struct heap open = {v, index, 0};
	uint64_t at = 0;

	qsort(v, n, sizeof(*v), by_address);
	c->n = 0;
	c->cap = FR_MIN(2 * n, (size_t)JIT_SYMBOLS_MAX);
	c->v = calloc(c->cap, sizeof(*c->v));
	if (!index || !c->v)
		return -ENOMEM;
	for (size_t i = 0; i < n || open.n;) {
		const struct jit_symbol *first;
		uint64_t next;

		if (!open.n)
			at = v[i].addr;
		for (; i < n && v[i].addr == at; i++)
			push(&open, i);
		while (open.n && v[open.index[0]].addr + v[open.index[0]].size <= at)
			pop(&open);
		if (!open.n)
			continue;
		first = &v[open.index[0]];
		next = first->addr + first->size;
		if (i < n)
			next = FR_MIN(next, v[i].addr);
		add_piece(c, first, at, next);
		at = next;
	}
	return 0;
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
	if (r >= 0 && c.n > 0)
		r = resolve_overlaps(&c);
	if (r < 0) {
		jit_code_deinit(&c);
		return r;
	}
	*ret = c;
	return 0;
}
