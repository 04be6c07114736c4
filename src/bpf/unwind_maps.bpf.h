/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The BPF maps with the unwind tables. The object unwind-maps.bpf.c owns them, and src/unwind/ maps them into
 * its memory. All other objects that include this header get the same maps (fr_unwinder_share_maps()).
 *
 * Include <linux/bpf.h> and <bpf/bpf_helpers.h> first.
 */

#include "unwind.h"

/* User space sets this to 0 if there is no unwinder: the maps do not exist then. Linux 6.1 verifies global
   functions even if no program calls them, so those must check this, too. */
const volatile _Bool fr_has_unwind = 1;

/* The chunks of fr_unwind_at. The inner maps are made when they are needed, so a lookup can return NULL. */
struct fr_unwind_chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(fr_u32));
	__uint(value_size, FR_UNWIND_CHUNK_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, FR_UNWIND_CHUNKS_MAX);
	__type(key, fr_u32);
	__array(values, struct fr_unwind_chunk_map);
} fr_unwind_chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, fr_u32);
	__type(value, struct fr_unwind_shared);
} fr_unwind_shared SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FR_UNWIND_FILES_MAX);
	__type(key, struct fr_unwind_file);
	__type(value, struct fr_unwind_file_object);
} fr_unwind_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, fr_u32);
	__type(value, struct fr_unwind_counters);
} fr_unwind_counters SEC(".maps");
