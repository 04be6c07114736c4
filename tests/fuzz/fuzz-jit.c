// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as a jitdump or a perf map. If the file can be parsed, the names and the code of all
   functions are within the file, functions of a perf map do not overlap, and all functions fit into an
   object. */

#include "fuzz.h"
#include "jit/code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[JIT_BUILD_ID_SIZE];
	struct jit_code c = {0};
	struct fr_buf file = {0}, object = {0};
	uint64_t base;
	bool is_dump, is_map;

	check(fr_buf_append(&file, data, size) == 0);
	is_dump = jit_dump_parse(&file, &c) == 0;
	is_map = !is_dump && jit_perf_map_parse((const char *)data, size, &c) == 0;
	for (size_t i = 0; i < c.n; i++) {
		check(c.v[i].name < c.names.len &&
			memchr(c.names.data + c.v[i].name, 0, c.names.len - c.v[i].name));
		check(!is_dump || (c.v[i].code <= c.file.len && c.v[i].size <= c.file.len - c.v[i].code));
		check(!is_map || (c.v[i].size > 0 && c.v[i].addr + c.v[i].size >= c.v[i].addr));
		check(!is_map || i == 0 || c.v[i - 1].addr + c.v[i - 1].size <= c.v[i].addr);
	}
	if (c.n > 0 && jit_object_make(&c, &object, &base, id) == 0)
		for (size_t i = 0; i < c.n; i++)
			check(!c.is_timed || c.v[i].offset + c.v[i].size <= object.len);
	fr_buf_deinit(&object);
	fr_buf_deinit(&file);
	jit_code_deinit(&c);
	return 0;
}
