// SPDX-License-Identifier: GPL-2.0-or-later
/* The part of the model that belongs to no process: the kernel's maps, ksymbols and cgroups. */
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

int model_apply_kernel_mmap(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns)
{
	const struct fr_record_mmap *rec = (const void *)h;
	struct fr_map map = {.start = rec->addr, .end = rec->addr + rec->len, .pgoff = rec->pgoff};
	int r;

	/* The maps of processes are MMAP2 records. */
	if ((h->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_KERNEL || map.end <= map.start)
		return 0;
	map.backing = fr_blob_get(m->pool, rec->filename, name_len);
	if (!map.backing)
		return -ENOMEM;
	/* A module is loaded only once, and as a whole. So an old map with the same name is gone, and so are
	   modules whose maps overlap the new map. */
	r = remove_named(m, map.backing);
	if (r == 0)
		r = fr_maps_remove(&m->kernel, m->pool, map.start, map.end);
	if (r < 0) {
		fr_blob_unref(m->pool, map.backing);
		return r;
	}
	return fr_maps_insert(&m->kernel, m->pool, &map);
}

static void remove_ksymbol(struct fr_model *m, struct model_ksymbol *k)
{
	fr_blob_unref(m->pool, k->name);
	MODEL_DELETE(m, m->ksymbols, k);
}

int model_apply_ksymbol(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns)
{
	const struct fr_record_ksymbol *rec = (const void *)h;
	struct model_ksymbol *k = FR_HASH_FIND(m->ksymbols, addr, rec->addr);
	struct fr_blob *name;

	if (rec->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) {
		if (k)
			remove_ksymbol(m, k);
		return 0;
	}
	name = fr_blob_get(m->pool, rec->name, name_len);
	if (!name)
		return -ENOMEM;
	if (!k)
		k = MODEL_NEW(m, m->ksymbols, addr, rec->addr);
	if (!k) {
		fr_blob_unref(m->pool, name);
		return -ENOMEM;
	}
	fr_blob_unref(m->pool, k->name);
	k->name = name;
	k->len = rec->len;
	k->type = rec->ksym_type;
	k->flags = rec->flags;
	k->seen_ns = time_ns;
	return 0;
}

static void remove_cgroup(struct fr_model *m, struct model_cgroup *c)
{
	fr_blob_unref(m->pool, c->path);
	MODEL_DELETE(m, m->cgroups, c);
}

int model_apply_cgroup(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns)
{
	const struct fr_record_cgroup *rec = (const void *)h;
	struct fr_blob *path = fr_blob_get(m->pool, rec->path, name_len);
	struct model_cgroup *c = FR_HASH_FIND(m->cgroups, id, rec->id);

	if (!path)
		return -ENOMEM;
	/* The kernel sends no record when a cgroup is removed. So if there are too many cgroups, remove the
	   cgroup whose record is the oldest. */
	if (c || HASH_COUNT(m->cgroups) >= MODEL_CGROUPS_MAX)
		remove_cgroup(m, c ? c : m->cgroups);
	c = MODEL_NEW(m, m->cgroups, id, rec->id);
	if (!c) {
		fr_blob_unref(m->pool, path);
		return -ENOMEM;
	}
	c->path = path;
	return 0;
}

static bool has_ksymbol_since(const struct fr_model *m, uint64_t since_ns)
{
	for (const struct model_ksymbol *k = m->ksymbols; k; k = k->hh.next)
		if (k->seen_ns >= since_ns)
			return true;
	return false;
}

int model_write_gone_ksymbols(struct fr_emit *e, const struct fr_model *m, uint64_t scan_ns)
{
	int r = 0;

	/* If the scan found no ksymbol at all, perhaps it was not permitted to see addresses. Such a scan
	   does not show which ksymbols are gone. Every scan finds only ksymbols of BPF, so ksymbols of other
	   types stay. */
	if (!has_ksymbol_since(m, scan_ns))
		return 0;
	for (const struct model_ksymbol *k = m->ksymbols; k && r == 0; k = k->hh.next)
		if (k->seen_ns < scan_ns && k->type == PERF_RECORD_KSYMBOL_TYPE_BPF)
			r = fr_emit_ksymbol(e, k->addr, k->len, k->type, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER,
				(const char *)k->name->data, k->name->len);
	return r;
}

void model_clear_kernel(struct fr_model *m)
{
	while (m->ksymbols)
		remove_ksymbol(m, m->ksymbols);
	while (m->cgroups)
		remove_cgroup(m, m->cgroups);
	m->kernel = fr_maps_unref(m->kernel, m->pool);
}
