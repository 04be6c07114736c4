/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to model*.c: the tables of the model. */

#include "sideband/emit.h"
#include "sideband/maps.h"
#include "sideband/model.h"

/* Bounds against damaged or forged records. Real machines need far less: 100,000 maps are 4 MB. */
#define MODEL_BYTES_MAX (256u << 20)
#define MODEL_CGROUPS_MAX 16384u
#define MODEL_NAMESPACES_MAX 16u

struct model_thread { /* a thread that is not the leader of its process */
	UT_hash_handle hh;
	struct model_thread *prev, *next; /* in the list of its process */
	struct model_process *process;
	struct fr_blob *comm;
	pid_t tid;
};

struct model_process {
	UT_hash_handle hh;
	pid_t pid, ppid;
	bool leader_dead; /* the leader has exited, but other threads still run */
	struct fr_blob *comm, *namespaces;
	struct fr_maps *maps;
	struct model_thread *threads;
	uint64_t seen_ns; /* time of the newest record that described the process */
};

struct model_ksymbol {
	UT_hash_handle hh;
	uint64_t addr;
	uint32_t len;
	uint16_t type, flags;
	struct fr_blob *name;
	uint64_t seen_ns;
};

struct model_cgroup {
	UT_hash_handle hh;
	uint64_t id;
	struct fr_blob *path;
};

struct fr_model {
	struct fr_blob_pool *pool; /* &own, or a pool that the model shares with another model */
	struct fr_blob_pool own;
	struct model_process *processes;
	struct model_thread *threads;
	struct fr_maps *kernel; /* text and modules of the kernel; the backing of a map is only its name */
	struct model_ksymbol *ksymbols;
	struct model_cgroup *cgroups; /* oldest record first */
};

/* The content of the blob `backing` of a process's map. RAW is as in struct fr_backing. */
struct model_backing {
	uint8_t raw[24];
	uint8_t has_build_id;
	char name[];
};
#define MODEL_BACKING_FIXED offsetof(struct model_backing, name)

/* Does the same as FR_HASH_NEW(), and also adds the size of the new element to the bytes of the pool. Returns
   NULL if there is no memory, or the pool is full. */
#define MODEL_NEW(m, table, key, value)                                                                      \
	({                                                                                                   \
		__typeof__((table) + 0) _counted = NULL;                                                     \
		if ((m)->pool->bytes <= (m)->pool->bytes_max)                                                \
			_counted = FR_HASH_NEW(table, key, value);                                           \
		(m)->pool->bytes += _counted ? sizeof(*_counted) : 0;                                        \
		_counted;                                                                                    \
	})
#define MODEL_DELETE(m, table, element)                                                                      \
	do {                                                                                                 \
		HASH_DEL(table, element);                                                                    \
		(m)->pool->bytes -= sizeof(*(element));                                                      \
		free(element);                                                                               \
	} while (0)

/* model_kernel.c: each function applies a record of one type. NAME_LEN is the length of the name in the
   record. Returns 0 or -ENOMEM. */
int model_apply_kernel_mmap(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns);
int model_apply_ksymbol(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns);
int model_apply_cgroup(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns);
/* Appends KSYMBOLs that unregister the BPF programs that are gone; see fr_model_write_gone(). Returns 0 or
   -ENOMEM. */
int model_write_gone_ksymbols(struct fr_emit *e, const struct fr_model *m, uint64_t scan_ns);
void model_clear_kernel(struct fr_model *m);
