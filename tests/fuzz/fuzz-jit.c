// SPDX-License-Identifier: GPL-2.0-or-later

/* What a process says of its code: a jitdump where it begins like one, a perf map else. What is taken of it
 * is within its bounds, and becomes an object. */

#include "jit/code.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_dump(const struct jit_code *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].code > c->file.len || c->v[i].size > c->file.len - c->v[i].code)
			abort();
}

static void check_map(const struct jit_code *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i].size == 0 || c->v[i].addr + c->v[i].size < c->v[i].addr)
			abort();
		if (i > 0 && c->v[i - 1].addr + c->v[i - 1].size > c->v[i].addr)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[JIT_BUILD_ID_SIZE];
	struct jit_code c = {0};
	struct fr_buf file = {0}, object = {0};
	uint64_t base;

	if (fr_buf_append(&file, data, size) < 0)
		return 0;
	if (jit_dump_parse(&file, &c) == 0)
		check_dump(&c);
	else if (jit_perf_map_parse((const char *)data, size, &c) == 0)
		check_map(&c);
	for (size_t i = 0; i < c.n; i++)
		if (c.v[i].name >= c.names.len ||
			!memchr(c.names.data + c.v[i].name, 0, c.names.len - c.v[i].name))
			abort();
	if (c.n > 0 && jit_object_make(&c, &object, &base, id) == 0)
		for (size_t i = 0; i < c.n; i++)
			if (c.is_timed && c.v[i].offset + c.v[i].size > object.len)
				abort();
	fr_buf_deinit(&object);
	fr_buf_deinit(&file);
	jit_code_deinit(&c);
	return 0;
}
