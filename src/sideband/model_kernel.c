// SPDX-License-Identifier: GPL-2.0-or-later
/* The part of the model that belongs to no process: the kernel's maps, ksymbols, cgroups. */
#include "sideband/model_internal.h"

#include <errno.h>
#include <string.h>

static int remove_named(struct fr_model *m, const struct fr_blob *name)
{
	for (size_t i = 0; m->kernel && i < m->kernel->n; i++)
		if (m->kernel->v[i].backing == name)
			return fr_maps_remove(
				&m->kernel, m->pool, m->kernel->v[i].start, m->kernel->v[i].end);
	return 0;
}

bool fr_model_kernel_overlaps(
	const struct fr_model *m, uint64_t start, uint64_t end, const char *name, size_t len)
{
	for (size_t i = 0; m->kernel && i < m->kernel->n; i++) {
		const struct fr_map *v = &m->kernel->v[i];

		if (v->start < end && v->end > start &&
			(v->backing->len != len || memcmp(v->backing->data, name, len) != 0))
			return true;
	}
	return false;
}

int model_apply_kernel_map(struct fr_model *m, const struct fr_map_range *r, const char *name, size_t len)
{
	struct fr_map map = {.start = r->addr, .end = r->addr + r->len, .pgoff = r->pgoff};
	int k;

	if (map.end <= map.start)
		return 0;
	map.backing = fr_blob_get(m->pool, name, len);
	if (!map.backing)
		return -ENOMEM;
	/* What overlaps was unloaded before this could come: there is no half of a module. And no module is
	   loaded twice, so one that comes again elsewhere has left its old place. */
	k = remove_named(m, map.backing);
	if (k == 0)
		k = fr_maps_remove(&m->kernel, m->pool, map.start, map.end);
	if (k < 0) {
		fr_blob_unref(m->pool, map.backing);
		return k;
	}
	return fr_maps_insert(&m->kernel, m->pool, &map);
}

static void ksymbol_remove(struct fr_model *m, struct model_ksymbol *k)
{
	HASH_DEL(m->ksymbols, k);
	fr_blob_unref(m->pool, k->name);
	m->pool->bytes -= sizeof(*k);
	free(k);
}

static struct model_ksymbol *ksymbol_add(struct fr_model *m, uint64_t addr)
{
	struct model_ksymbol *k;

	if (m->pool->bytes > m->pool->bytes_max)
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->addr = addr;
	HASH_ADD(hh, m->ksymbols, addr, sizeof(k->addr), k);
	if (!k->hh.tbl) {
		free(k);
		return NULL;
	}
	m->pool->bytes += sizeof(*k);
	return k;
}

int model_apply_ksymbol(struct fr_model *m, const struct fr_record_ksymbol *r, size_t len, uint64_t time_ns)
{
	struct model_ksymbol *k;
	struct fr_blob *name;

	HASH_FIND(hh, m->ksymbols, &r->addr, sizeof(r->addr), k);
	if (r->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) {
		if (k)
			ksymbol_remove(m, k);
		return 0;
	}
	name = fr_blob_get(m->pool, r->name, len);
	if (!name)
		return -ENOMEM;
	if (!k)
		k = ksymbol_add(m, r->addr);
	if (!k) {
		fr_blob_unref(m->pool, name);
		return -ENOMEM;
	}
	fr_blob_unref(m->pool, k->name);
	k->name = name;
	k->len = r->len;
	k->type = r->ksym_type;
	k->flags = r->flags;
	k->seen_ns = time_ns;
	return 0;
}

static void cgroup_remove(struct fr_model *m, struct model_cgroup *c)
{
	HASH_DEL(m->cgroups, c);
	fr_blob_unref(m->pool, c->path);
	m->pool->bytes -= sizeof(*c);
	free(c);
}

int model_apply_cgroup(struct fr_model *m, const struct fr_record_cgroup *r, size_t len)
{
	struct fr_blob *path = fr_blob_get(m->pool, r->path, len);
	struct model_cgroup *c;

	if (!path)
		return -ENOMEM;
	HASH_FIND(hh, m->cgroups, &r->id, sizeof(r->id), c);
	if (c)
		cgroup_remove(m, c);
	/* Nobody says when a cgroup goes: the oldest have to make room. */
	else if (HASH_COUNT(m->cgroups) >= MODEL_CGROUPS_MAX)
		cgroup_remove(m, m->cgroups);
	c = calloc(1, sizeof(*c));
	if (!c) {
		fr_blob_unref(m->pool, path);
		return -ENOMEM;
	}
	*c = (struct model_cgroup){.id = r->id, .path = path};
	HASH_ADD(hh, m->cgroups, id, sizeof(c->id), c);
	if (!c->hh.tbl) {
		fr_blob_unref(m->pool, path);
		free(c);
		return -ENOMEM;
	}
	m->pool->bytes += sizeof(*c);
	return 0;
}

static bool any_ksymbol_seen(const struct fr_model *m, uint64_t since_ns)
{
	for (struct model_ksymbol *k = m->ksymbols; k; k = k->hh.next)
		if (k->seen_ns >= since_ns)
			return true;
	return false;
}

int model_write_gone_ksymbols(struct fr_emit *e, const struct fr_model *m, uint64_t scan_ns)
{
	int r = 0;

	/* Where the scan may not see addresses, it says nothing of ksymbols: that is no reason to forget
	 * them. It never sees those that are not BPF's. */
	if (!any_ksymbol_seen(m, scan_ns))
		return 0;
	for (const struct model_ksymbol *k = m->ksymbols; k && r == 0; k = k->hh.next)
		if (k->seen_ns < scan_ns && k->type == PERF_RECORD_KSYMBOL_TYPE_BPF)
			r = fr_emit_ksymbol(e, k->addr, k->len, k->type, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER,
				(const char *)k->name->data, k->name->len);
	return r;
}

void model_kernel_clear(struct fr_model *m)
{
	struct model_ksymbol *k, *k_next;
	struct model_cgroup *c, *c_next;

	HASH_ITER (hh, m->ksymbols, k, k_next)
		ksymbol_remove(m, k);
	HASH_ITER (hh, m->cgroups, c, c_next)
		cgroup_remove(m, c);
	m->kernel = fr_maps_unref(m->kernel, m->pool);
}
