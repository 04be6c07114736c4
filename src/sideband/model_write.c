// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes the model as records. */
#include "sideband/model_internal.h"

#include <string.h>
#include <utlist.h>

static int write_map(struct fr_emit *e, pid_t pid, const struct fr_map *v)
{
	const struct model_backing *b = (const void *)v->backing->data;
	struct fr_map_range range = {v->start, v->end - v->start, v->pgoff, v->prot, v->flags};
	struct fr_backing backing = {.has_build_id = b->has_build_id};

	memcpy(backing.raw, b->raw, sizeof(b->raw));
	return fr_emit_mmap2(e, pid, &range, &backing, b->name, v->backing->len - MODEL_BACKING_FIXED);
}

static int write_comm(struct fr_emit *e, pid_t pid, pid_t tid, const struct fr_blob *comm)
{
	return comm ? fr_emit_comm(e, pid, tid, (const char *)comm->data, comm->len) : 0;
}

static int write_process(struct fr_emit *e, const struct model_process *p)
{
	const struct model_thread *t;
	int r = fr_emit_task(e, p->pid, p->pid, p->ppid, p->ppid);

	if (r == 0)
		r = write_comm(e, p->pid, p->pid, p->comm);
	if (r == 0 && p->namespaces)
		r = fr_emit_namespaces(
			e, p->pid, p->pid, p->namespaces->data, p->namespaces->len / (2 * sizeof(uint64_t)));
	for (size_t i = 0; p->maps && i < p->maps->n && r == 0; i++)
		r = write_map(e, p->pid, &p->maps->v[i]);
	DL_FOREACH (p->threads, t) {
		if (r == 0)
			r = fr_emit_task(e, p->pid, t->tid, p->pid, p->pid);
		if (r == 0)
			r = write_comm(e, p->pid, t->tid, t->comm);
	}
	return r;
}

enum part { KERNEL, KSYMBOLS, CGROUPS, PROCESSES, DONE };

/* Writes all kernel maps in one piece: a machine has few modules. */
static int write_kernel(struct fr_emit *e, const struct fr_model *m)
{
	int r = 0;

	for (size_t i = 0; m->kernel && i < m->kernel->n && r == 0; i++) {
		const struct fr_map *v = &m->kernel->v[i];
		struct fr_map_range range = {.addr = v->start, .len = v->end - v->start, .pgoff = v->pgoff};

		r = fr_emit_kernel_mmap(e, &range, (const char *)v->backing->data, v->backing->len);
	}
	return r;
}

static const void *first_element(const struct fr_model *m, int part)
{
	switch (part) {
	case KSYMBOLS:
		return m->ksymbols;
	case CGROUPS:
		return m->cgroups;
	case PROCESSES:
		return m->processes;
	default:
		return NULL;
	}
}

/* Writes the element AT of PART. RET_NEXT gets the next element. */
static int write_element(struct fr_emit *e, int part, const void *at, const void **ret_next)
{
	const struct model_ksymbol *k = at;
	const struct model_cgroup *c = at;
	const struct model_process *p = at;

	switch (part) {
	case KSYMBOLS:
		*ret_next = k->hh.next;
		return fr_emit_ksymbol(
			e, k->addr, k->len, k->type, k->flags, (const char *)k->name->data, k->name->len);
	case CGROUPS:
		*ret_next = c->hh.next;
		return fr_emit_cgroup(e, c->id, (const char *)c->path->data, c->path->len);
	default:
		*ret_next = p->hh.next;
		return write_process(e, p);
	}
}

int fr_model_write_some(const struct fr_model *m, struct fr_model_cursor *c, uint64_t time_ns, uint64_t id,
	size_t less_than, struct fr_buf *ret)
{
	struct fr_emit e = {.to = ret, .time_ns = time_ns, .id = id};
	size_t before = ret->len;
	int r = 0;

	while (c->part != DONE && ret->len - before < less_than && r == 0) {
		if (c->part != KERNEL && c->at) {
			r = write_element(&e, c->part, c->at, &c->at);
			continue;
		}
		if (c->part == KERNEL)
			r = write_kernel(&e, m);
		c->at = first_element(m, ++c->part);
	}
	return r < 0 ? r : c->part != DONE;
}

int fr_model_write(const struct fr_model *m, uint64_t time_ns, uint64_t id, struct fr_buf *ret)
{
	struct fr_model_cursor all = {0};
	size_t before = ret->len;
	int r = fr_model_write_some(m, &all, time_ns, id, SIZE_MAX, ret);

	if (r < 0)
		ret->len = before;
	return r;
}

int fr_model_write_gone(const struct fr_model *m, uint64_t scan_ns, uint64_t id, struct fr_buf *ret)
{
	struct fr_emit e = {.to = ret, .time_ns = scan_ns, .id = id};
	const struct model_thread *t;
	int r = model_write_gone_ksymbols(&e, m, scan_ns);

	for (const struct model_process *p = m->processes; p && r == 0; p = p->hh.next) {
		if (p->seen_ns >= scan_ns)
			continue;
		DL_FOREACH (p->threads, t)
			if (r == 0)
				r = fr_emit_exit(&e, p->pid, t->tid);
		if (r == 0)
			r = fr_emit_exit(&e, p->pid, p->pid);
	}
	return r;
}
