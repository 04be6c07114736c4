/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to model*.c: what the model holds. */

#include "sideband/emit.h"
#include "sideband/maps.h"
#include "sideband/model.h"

/* Bounds against garbage, far above any live machine (100,000 maps are 4 MB). */
#define MODEL_BYTES_MAX (256u << 20)
#define MODEL_CGROUPS_MAX 16384u
#define MODEL_NAMESPACES_MAX 16u

struct model_thread { /* all threads but the leaders */
	UT_hash_handle hh;
	struct model_thread *prev, *next; /* in its process */
	struct model_process *process;
	struct fr_blob *comm;
	pid_t tid;
};

struct model_process {
	UT_hash_handle hh;
	pid_t pid, ppid;
	bool leader_dead; /* kept for the threads that live on */
	struct fr_blob *comm, *namespaces;
	struct fr_maps *maps;
	struct model_thread *threads;
	uint64_t seen_ns; /* newest record that spoke of it */
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
	struct fr_blob_pool *pool; /* that may be another model's, too */
	struct fr_blob_pool own;
	struct model_process *processes;
	struct model_thread *threads;
	struct fr_maps *kernel; /* the kernel's text and modules; their backing is the name alone */
	struct model_ksymbol *ksymbols;
	struct model_cgroup *cgroups; /* least recently heard of first */
};

/* What a map's blob holds. */
struct model_backing {
	uint8_t raw[24];
	uint8_t has_build_id;
	char name[];
};
#define MODEL_BACKING_FIXED offsetof(struct model_backing, name)

struct model_process *model_process_find(const struct fr_model *m, pid_t pid);
/* NULL: no memory. */
struct model_process *model_process_add(struct fr_model *m, pid_t pid);
void model_process_remove(struct fr_model *m, struct model_process *p);
struct model_thread *model_thread_find(const struct fr_model *m, pid_t tid);
/* An existing thread of that tid is taken out first. */
struct model_thread *model_thread_add(struct fr_model *m, struct model_process *p, pid_t tid);
void model_thread_remove(struct fr_model *m, struct model_thread *t);

/* The kernel's side, in model_kernel.c. Each 0 or -ENOMEM; LEN is a name's without NUL. */
int model_apply_kernel_map(struct fr_model *m, const struct fr_map_range *r, const char *name, size_t len);
int model_apply_ksymbol(struct fr_model *m, const struct fr_record_ksymbol *k, size_t len, uint64_t time_ns);
int model_apply_cgroup(struct fr_model *m, const struct fr_record_cgroup *c, size_t len);
/* Unregistering KSYMBOLs; see fr_model_write_gone(). */
int model_write_gone_ksymbols(struct fr_emit *e, const struct fr_model *m, uint64_t scan_ns);
void model_kernel_clear(struct fr_model *m);
