// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "chunks.h"
#include "base/cleanup.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

int chunks_new(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, outer);
	_cleanup_close_ int inner =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, FR_UNWIND_CHUNK_BYTES, 1, &opts);
	int fd;

	if (inner < 0)
		unit_skip("cannot make BPF maps: %s", strerror(errno));
	outer.inner_map_fd = (uint32_t)inner;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", 4, 4, FR_UNWIND_CHUNKS_MAX, &outer);
	assert_true(fd >= 0);
	return fd;
}

const void *chunks_read(int fd, fr_unwind_at at)
{
	static uint8_t value[FR_UNWIND_CHUNK_BYTES];
	const uint32_t chunk = at >> FR_UNWIND_AT_BITS, zero = 0;
	_cleanup_close_ int inner = -1;
	uint32_t id;

	if (bpf_map_lookup_elem(fd, &chunk, &id) < 0)
		return NULL;
	inner = bpf_map_get_fd_by_id(id);
	if (inner < 0 || bpf_map_lookup_elem(inner, &zero, value) < 0)
		return NULL;
	return value + (size_t)(at & ((1u << FR_UNWIND_AT_BITS) - 1)) * FR_UNWIND_AT_UNIT;
}
