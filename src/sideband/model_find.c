// SPDX-License-Identifier: GPL-2.0-or-later
/* What readers of a recording ask the model: names of tasks, and what is at an address. */
#include "base/cleanup.h"
#include "sideband/model_internal.h"

#include <string.h>

static bool describe_map(const struct fr_map *map, struct fr_model_map *ret)
{
	if (map)
		*ret = (struct fr_model_map){map->start, map->end, map->pgoff, map->backing};
	return map;
}

bool fr_model_find_map(const struct fr_model *m, uint32_t pid, uint64_t addr, struct fr_model_map *ret)
{
	const struct model_process *p = FR_HASH_FIND(m->processes, pid, (pid_t)pid);

	return describe_map(p ? fr_maps_find(p->maps, addr) : NULL, ret);
}

bool fr_model_find_kernel_map(const struct fr_model *m, uint64_t addr, struct fr_model_map *ret)
{
	return describe_map(fr_maps_find(m->kernel, addr), ret);
}

bool fr_model_find_kernel_text(const struct fr_model *m, const char *prefix, struct fr_model_map *ret)
{
	const size_t len = strlen(prefix);

	for (size_t i = 0; m->kernel && i < m->kernel->n; i++) {
		const struct fr_blob *name = m->kernel->v[i].backing;

		if (name->len >= len && memcmp(name->data, prefix, len) == 0)
			return describe_map(&m->kernel->v[i], ret);
	}
	return false;
}

void fr_model_describe_file(const struct fr_blob *file, struct fr_model_file *ret)
{
	const struct model_backing *b = (const void *)file->data;
	struct fr_backing raw;

	memcpy(raw.raw, b->raw, sizeof(raw.raw));
	*ret = (struct fr_model_file){.path = b->name, .path_len = file->len - MODEL_BACKING_FIXED};
	if (!b->has_build_id)
		return;
	ret->build_id =
		b->raw + offsetof(struct fr_backing, build_id.bytes) - offsetof(struct fr_backing, raw);
	ret->build_id_len = FR_MIN((size_t)raw.build_id.size, sizeof(raw.build_id.bytes));
}

const struct fr_blob *fr_model_comm(const struct fr_model *m, uint32_t pid, uint32_t tid)
{
	const struct model_thread *t = tid == pid ? NULL : FR_HASH_FIND(m->threads, tid, (pid_t)tid);
	const struct model_process *p;

	if (t && t->comm)
		return t->comm;
	p = FR_HASH_FIND(m->processes, pid, (pid_t)pid);
	return p ? p->comm : NULL;
}

uint32_t fr_model_n_threads(const struct fr_model *m, uint32_t pid)
{
	const struct model_process *p = FR_HASH_FIND(m->processes, pid, (pid_t)pid);
	uint32_t n = p ? !p->leader_dead : 0;

	for (const struct model_thread *t = p ? p->threads : NULL; t; t = t->next)
		n++;
	return n;
}

const struct fr_blob *fr_model_find_ksymbol(const struct fr_model *m, uint64_t addr, uint64_t *ret_start)
{
	for (const struct model_ksymbol *k = m->ksymbols; k; k = k->hh.next)
		if (addr >= k->addr && addr - k->addr < k->len) {
			*ret_start = k->addr;
			return k->name;
		}
	return NULL;
}

const struct fr_blob *fr_model_cgroup(const struct fr_model *m, uint64_t id)
{
	const struct model_cgroup *c = FR_HASH_FIND(m->cgroups, id, id);

	return c ? c->path : NULL;
}

uint32_t fr_model_parent(const struct fr_model *m, uint32_t pid)
{
	const struct model_process *p = FR_HASH_FIND(m->processes, pid, (pid_t)pid);

	return p && p->ppid > 0 ? (uint32_t)p->ppid : 0;
}
