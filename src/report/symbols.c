// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/symbols.h"
#include "base/cleanup.h"
#include "report/demangle.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOLS_MAX (1u << 22)
#define PAGE 4096u
#define GAP (1u << 20) /* bytes between symbols of the kernel that do not belong to each other */

int fr_symbols_add(struct fr_symbols *s, uint64_t start, uint64_t size, bool is_weak, bool is_global,
	const char *name, size_t len)
{
	struct fr_symbol symbol = {
		.start = start, .end = start + size, .is_weak = is_weak, .is_global = is_global};

	if (s->n >= SYMBOLS_MAX || s->names.len + len >= UINT32_MAX || symbol.end < start)
		return 0;
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 256;
		struct fr_symbol *v = reallocarray(s->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	symbol.name = (uint32_t)s->names.len;
	if (fr_buf_append(&s->names, name, len) < 0 || fr_buf_append(&s->names, "", 1) < 0)
		return -ENOMEM;
	s->v[s->n++] = symbol;
	return 0;
}

void fr_symbols_deinit(struct fr_symbols *s)
{
	free(s->v);
	fr_buf_deinit(&s->names);
	*s = (struct fr_symbols){0};
}

static int compare_starts(const void *x, const void *y, void *names)
{
	const struct fr_symbol *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name; /* the order of the file */
}

/* Of two symbols that are alike otherwise, the one with fewer underscores at the front is better, then the
   one with the longer name. */
static bool is_better_name(const char *a, const char *b)
{
	_cleanup_free_ char *a_plain = fr_demangle(a), *b_plain = fr_demangle(b);
	size_t a_front, b_front;

	a = a_plain ? a_plain : a;
	b = b_plain ? b_plain : b;
	a_front = strspn(a, "_");
	b_front = strspn(b, "_");
	return a_front != b_front ? b_front < a_front : strlen(b) > strlen(a);
}

/* Returns whether B is the better one of two symbols with the same address. A comes before B in the file. */
static bool is_better(const struct fr_symbols *s, const struct fr_symbol *a, const struct fr_symbol *b)
{
	const bool a_has_size = a->end > a->start, b_has_size = b->end > b->start;

	if (a_has_size != b_has_size)
		return b_has_size;
	if (a->is_weak != b->is_weak)
		return a->is_weak;
	if (a->is_global != b->is_global)
		return b->is_global;
	return is_better_name(fr_symbols_name(s, a), fr_symbols_name(s, b));
}

void fr_symbols_finish(struct fr_symbols *s, bool kernel)
{
	size_t n = 0;

	if (s->n > 1)
		qsort_r(s->v, s->n, sizeof(*s->v), compare_starts, s);
	for (size_t i = 0; i < s->n; i++)
		if (n > 0 && s->v[n - 1].start == s->v[i].start) {
			if (kernel || is_better(s, &s->v[n - 1], &s->v[i]))
				s->v[n - 1] = s->v[i];
		} else {
			s->v[n++] = s->v[i];
		}
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		const uint64_t page = FR_ALIGN_UP(s->v[i].start + 1, PAGE);

		if (s->v[i].end > s->v[i].start)
			continue;
		if (i + 1 < n && (!kernel || s->v[i + 1].start - s->v[i].start < GAP))
			s->v[i].end = s->v[i + 1].start;
		else
			s->v[i].end = page;
	}
}

const struct fr_symbol *fr_symbols_find(const struct fr_symbols *s, uint64_t addr)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (s->v[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	/* A symbol can lie in another one. Then the inner one wins, and behind its end the outer one. */
	for (size_t back = 0; low > 0 && back < 8; back++)
		if (addr < s->v[--low].end)
			return &s->v[low];
	return NULL;
}

/* Takes the next line of the text at *P. Returns false at the end. */
static bool take_line(const char **p, const char *end, const char **ret, size_t *ret_len)
{
	const char *newline;

	if (*p >= end)
		return false;
	newline = memchr(*p, '\n', (size_t)(end - *p));
	*ret = *p;
	*ret_len = (size_t)((newline ? newline : end) - *p);
	*p = newline ? newline + 1 : end;
	return true;
}

/* Reads a hexadecimal number from the front of a text. Returns the number of its digits, 0 if there is
   none. */
static size_t read_hex(const char *p, size_t len, uint64_t *ret)
{
	size_t n = 0;

	*ret = 0;
	for (; n < len && n < 16 && isxdigit((unsigned char)p[n]); n++)
		*ret = *ret << 4 |
		       (uint64_t)(isdigit((unsigned char)p[n]) ? p[n] - '0' : (p[n] | 32) - 'a' + 10);
	return n;
}

/* A line of kallsyms: "ffffffff81000000 T _text", and for a module "…	[ext4]". */
struct kallsym {
	uint64_t addr;
	char type;
	const char *name, *module;
	size_t name_len, module_len; /* module_len 0: of the kernel itself */
};

static bool parse_kallsym(const char *line, size_t len, struct kallsym *ret)
{
	const size_t digits = read_hex(line, len, &ret->addr);
	const char *tab;

	if (digits == 0 || len < digits + 4 || line[digits] != ' ' || line[digits + 2] != ' ')
		return false;
	ret->type = line[digits + 1];
	ret->name = line + digits + 3;
	len -= digits + 3;
	tab = memchr(ret->name, '\t', len);
	ret->name_len = tab ? (size_t)(tab - ret->name) : len;
	ret->module = tab ? tab + 2 : NULL;
	ret->module_len = tab && len > ret->name_len + 3 ? len - ret->name_len - 3 : 0;
	return ret->name_len > 0;
}

/* MODULE is "" for the kernel itself. */
static bool is_of_module(const struct kallsym *k, const char *module)
{
	return k->module ? strlen(module) == k->module_len && !memcmp(module, k->module, k->module_len)
			 : !*module;
}

int fr_symbols_add_kallsyms(struct fr_symbols *s, const char *text, size_t len, const char *module)
{
	const char *line, *end = text + len;
	struct kallsym k;
	size_t n;
	int r = 0;

	while (r == 0 && take_line(&text, end, &line, &n)) {
		if (!parse_kallsym(line, n, &k) || !strchr("TtWw", k.type))
			continue;
		if (module && !is_of_module(&k, module))
			continue;
		r = fr_symbols_add(s, k.addr, 0, tolower(k.type) == 'w', isupper(k.type), k.name, k.name_len);
	}
	return r;
}

uint64_t fr_kallsyms_find(const char *text, size_t len, const char *name)
{
	const char *line, *end = text + len;
	struct kallsym k;
	size_t n;

	while (take_line(&text, end, &line, &n))
		if (parse_kallsym(line, n, &k) && k.module_len == 0 && k.name_len == strlen(name) &&
			memcmp(k.name, name, k.name_len) == 0)
			return k.addr;
	return 0;
}
