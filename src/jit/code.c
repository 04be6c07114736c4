// SPDX-License-Identifier: GPL-2.0-or-later
#include "jit/code.h"

#include <errno.h>
#include <stdlib.h>

void jit_code_deinit(struct jit_code *c)
{
	free(c->v);
	fr_buf_deinit(&c->names);
	fr_buf_deinit(&c->file);
	*c = (struct jit_code){0};
}

int jit_code_add(struct jit_code *c, const struct jit_symbol *s, const char *name, size_t len)
{
	int r;

	if (c->n == JIT_SYMBOLS_MAX) {
		c->truncated = true;
		return 1;
	}
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 256;
		struct jit_symbol *v = reallocarray(c->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		c->v = v;
		c->cap = cap;
	}
	/* Offset 0 is the empty name, as in an ELF string table. */
	r = c->names.len ? 0 : fr_buf_append_zero(&c->names, 1);
	if (r == 0)
		r = fr_buf_reserve(&c->names, JIT_NAME_MAX + 1);
	if (r < 0)
		return r;
	c->v[c->n] = *s;
	c->v[c->n].name = (uint32_t)c->names.len;
	c->v[c->n].order = c->n;
	c->n++;
	(void)fr_buf_append(&c->names, name, len > JIT_NAME_MAX ? JIT_NAME_MAX : len);
	return fr_buf_append_zero(&c->names, 1);
}
