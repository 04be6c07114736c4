// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/code.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads a hexadecimal number and the space after it, and moves *AT to the byte after the space. Returns false
   if there is no such number, or no space. */
static bool parse_hex(const char **at, uint64_t *ret)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	*ret = strtoull(*at, &end, 16); /* jit_is_range() rejects a number that is too large */
	*at = end + 1;
	return *end == ' ';
}

/* Adds the function of LINE. A newline must follow the LEN bytes of LINE. A malformed line is skipped.
   Returns 0 if the line was skipped, else the same values as jit_code_add(). */
static int parse_line(const char *line, size_t len, struct jit_code *to)
{
	const char *at = line, *end = line + len;
	struct jit_symbol s = {0};

	if (!parse_hex(&at, &s.addr) || !parse_hex(&at, &s.size) || at == end ||
		!jit_is_range(s.addr, s.size) || memchr(at, '\0', (size_t)(end - at)))
		return 0;
	return jit_code_add(to, &s, at, (size_t)(end - at));
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Collects the start and end addresses (bounds) of the N functions V, sorted, each once. RET has room for 2 N
   bounds. Returns the number of bounds. */
static size_t collect_bounds(const struct jit_symbol *v, size_t n, uint64_t *ret)
{
	size_t unique = 0;

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = v[i].addr;
		ret[2 * i + 1] = v[i].addr + v[i].size;
	}
	qsort(ret, 2 * n, sizeof(*ret), by_value);
	for (size_t i = 0; i < 2 * n; i++)
		if (i == 0 || ret[i] != ret[unique - 1])
			ret[unique++] = ret[i];
	return unique;
}

/* Returns the first interval at or after I that has no owner. If an interval k has no owner, next[k] is k.
   Otherwise next[k] is a later interval. The search shortens the paths through NEXT. */
static size_t find_free(uint32_t *next, size_t i)
{
	while (next[i] != i) {
		next[i] = next[next[i]];
		i = next[i];
	}
	return i;
}

/* Appends the part FROM … TO of S. If the newest piece in C is of S and ends at FROM, extends this piece. */
static void add_piece(struct jit_code *c, const struct jit_symbol *s, uint64_t from, uint64_t to)
{
	struct jit_symbol *end = &c->v[c->n];

	if (c->n > 0 && end[-1].order == s->order && end[-1].addr + end[-1].size == from) {
		end[-1].size += to - from;
	} else if (c->n == c->cap) {
		c->truncated = true;
	} else {
		*end = *s;
		end->addr = from;
		end->size = to - from;
		c->n++;
	}
}

/*
 * A process reuses the memory of old code, and only a later line of the perf map shows that. The rest of an
 * earlier function may be in pieces. The bounds of all functions divide the memory into intervals. Each
 * interval belongs to the last line that covers it. The right half of the picture shows for each part of the
 * memory the number of this line.
 *
 *     line 1   ├────────────────┤              1111 3 1 222
 *     line 2               ├────────┤    ──►
 *     line 3       ├─┤
 */
static int resolve_overlaps(struct jit_code *c)
{
	const size_t n = c->n;
	_cleanup_free_ struct jit_symbol *v = c->v;
	_cleanup_free_ uint64_t *bounds = calloc(2 * n, sizeof(*bounds));
	_cleanup_free_ uint32_t *next = calloc(2 * n, sizeof(*next));
	_cleanup_free_ uint32_t *owner = calloc(2 * n, sizeof(*owner)); /* index + 1; 0: none */
	size_t n_bounds;

	c->n = 0;
	c->cap = FR_MIN(2 * n, (size_t)JIT_SYMBOLS_MAX);
	c->v = calloc(c->cap, sizeof(*c->v));
	if (!bounds || !next || !owner || !c->v)
		return -ENOMEM;
	n_bounds = collect_bounds(v, n, bounds);
	for (uint32_t i = 0; i < n_bounds; i++)
		next[i] = i;
	for (size_t line = n; line-- > 0;) {
		const uint64_t end = v[line].addr + v[line].size;
		const uint64_t *first = bsearch(&v[line].addr, bounds, n_bounds, sizeof(*bounds), by_value);
		size_t i = find_free(next, (size_t)(first - bounds));

		/* The last bound is the end of a function and not the start of another function, so it never
		   gets an owner. */
		for (; bounds[i] < end; i = find_free(next, i)) {
			owner[i] = (uint32_t)line + 1;
			next[i] = (uint32_t)i + 1;
		}
	}
	for (size_t i = 0; i + 1 < n_bounds; i++)
		if (owner[i])
			add_piece(c, &v[owner[i] - 1], bounds[i], bounds[i + 1]);
	return 0;
}

int jit_perf_map_parse(const char *text, size_t len, struct jit_code *ret)
{
	struct jit_code c = {0};
	int r = 0;

	while (len > 0 && r == 0) {
		const char *newline = memchr(text, '\n', len);
		size_t line = newline ? (size_t)(newline - text) : len;

		/* A line without a newline is not complete yet, so it is left out. */
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
