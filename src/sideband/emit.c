// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/emit.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Append a record: FIXED zero bytes; NAME (NULL: none) with its NUL, padded to 8 bytes; and a sample id.
   Returns the record, which is valid until the next append; or NULL if there is no memory. */
static void *append_record(struct fr_emit *e, uint32_t type, uint16_t misc, size_t fixed, const char *name,
	size_t len, pid_t pid, pid_t tid)
{
	size_t name_len = FR_MIN(len, FR_EMIT_NAME_MAX);
	size_t padded = name ? FR_ALIGN_UP(name_len + 1, 8) : 0;
	size_t size = fixed + padded + sizeof(struct fr_sample_id);
	struct fr_sample_id *id;
	struct perf_event_header *h;

	if (fr_buf_append_zero(e->to, size) < 0)
		return NULL;
	h = (struct perf_event_header *)(e->to->data + e->to->len - size);
	*h = (struct perf_event_header){.type = type, .misc = misc, .size = (uint16_t)size};
	if (name)
		memcpy((char *)h + fixed, name, name_len);
	id = (struct fr_sample_id *)((char *)h + fixed + padded);
	id->pid = (uint32_t)pid;
	id->tid = (uint32_t)tid;
	id->time = e->time_ns;
	id->id = e->id;
	return h;
}

int fr_emit_kernel_mmap(struct fr_emit *e, const struct fr_map_range *r, const char *name, size_t len)
{
	struct fr_record_mmap *m =
		append_record(e, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, sizeof(*m), name, len, 0, 0);

	if (!m)
		return -ENOMEM;
	m->pid = UINT32_MAX;
	m->addr = r->addr;
	m->len = r->len;
	m->pgoff = r->pgoff;
	return 0;
}

int fr_emit_mmap2(struct fr_emit *e, pid_t pid, const struct fr_map_range *r, const struct fr_backing *b,
	const char *name, size_t len)
{
	uint16_t misc = PERF_RECORD_MISC_USER;
	struct fr_record_mmap2 *m;

	if (b->has_build_id)
		misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	if (!(r->prot & PROT_EXEC))
		misc |= PERF_RECORD_MISC_MMAP_DATA;
	m = append_record(e, PERF_RECORD_MMAP2, misc, sizeof(*m), name, len, pid, pid);
	if (!m)
		return -ENOMEM;
	m->pid = m->tid = (uint32_t)pid;
	m->addr = r->addr;
	m->len = r->len;
	m->pgoff = r->pgoff;
	memcpy(&m->maj, b->raw, sizeof(b->raw));
	m->prot = r->prot;
	m->flags = r->flags;
	return 0;
}

static int append_task(struct fr_emit *e, uint32_t type, uint16_t misc, const pid_t ids[4])
{
	struct fr_record_task *t = append_record(e, type, misc, sizeof(*t), NULL, 0, ids[0], ids[1]);

	if (!t)
		return -ENOMEM;
	t->pid = (uint32_t)ids[0];
	t->tid = (uint32_t)ids[1];
	t->ppid = (uint32_t)ids[2];
	t->ptid = (uint32_t)ids[3];
	t->time = e->time_ns;
	return 0;
}

int fr_emit_task(struct fr_emit *e, pid_t pid, pid_t tid, pid_t ppid, pid_t ptid)
{
	return append_task(
		e, PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC, (const pid_t[]){pid, tid, ppid, ptid});
}

int fr_emit_exit(struct fr_emit *e, pid_t pid, pid_t tid)
{
	return append_task(e, PERF_RECORD_EXIT, 0, (const pid_t[]){pid, tid, pid, pid});
}

int fr_emit_comm(struct fr_emit *e, pid_t pid, pid_t tid, const char *comm, size_t len)
{
	struct fr_record_comm *c = append_record(e, PERF_RECORD_COMM, 0, sizeof(*c), comm, len, pid, tid);

	if (!c)
		return -ENOMEM;
	c->pid = (uint32_t)pid;
	c->tid = (uint32_t)tid;
	return 0;
}

int fr_emit_namespaces(struct fr_emit *e, pid_t pid, pid_t tid, const void *links, size_t n)
{
	struct fr_record_namespaces *ns;
	size_t bytes = n * sizeof(ns->link[0]);

	ns = append_record(e, PERF_RECORD_NAMESPACES, 0, sizeof(*ns) + bytes, NULL, 0, pid, tid);
	if (!ns)
		return -ENOMEM;
	ns->pid = (uint32_t)pid;
	ns->tid = (uint32_t)tid;
	ns->nr_namespaces = n;
	memcpy(ns->link, links, bytes);
	return 0;
}

int fr_emit_ksymbol(struct fr_emit *e, uint64_t addr, uint32_t size, uint16_t type, uint16_t flags,
	const char *name, size_t len)
{
	struct fr_record_ksymbol *k =
		append_record(e, PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL, sizeof(*k), name, len, 0, 0);

	if (!k)
		return -ENOMEM;
	k->addr = addr;
	k->len = size;
	k->ksym_type = type;
	k->flags = flags;
	return 0;
}

int fr_emit_cgroup(struct fr_emit *e, uint64_t cgroup_id, const char *path, size_t len)
{
	struct fr_record_cgroup *c = append_record(e, PERF_RECORD_CGROUP, 0, sizeof(*c), path, len, 0, 0);

	if (!c)
		return -ENOMEM;
	c->id = cgroup_id;
	return 0;
}
