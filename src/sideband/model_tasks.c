// SPDX-License-Identifier: GPL-2.0-or-later
/* The model's tables of processes and threads. */
#include "sideband/model_internal.h"

#include <utlist.h>

struct model_process *model_process_find(const struct fr_model *m, pid_t pid)
{
	struct model_process *p;

	HASH_FIND(hh, m->processes, &pid, sizeof(pid), p);
	return p;
}

struct model_process *model_process_add(struct fr_model *m, pid_t pid)
{
	struct model_process *p;

	if (m->pool->bytes > m->pool->bytes_max)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD(hh, m->processes, pid, sizeof(p->pid), p);
	if (!p->hh.tbl) {
		free(p);
		return NULL;
	}
	m->pool->bytes += sizeof(*p);
	return p;
}

void model_process_remove(struct fr_model *m, struct model_process *p)
{
	while (p->threads)
		model_thread_remove(m, p->threads);
	HASH_DEL(m->processes, p);
	fr_maps_unref(p->maps, m->pool);
	fr_blob_unref(m->pool, p->comm);
	fr_blob_unref(m->pool, p->namespaces);
	m->pool->bytes -= sizeof(*p);
	free(p);
}

struct model_thread *model_thread_find(const struct fr_model *m, pid_t tid)
{
	struct model_thread *t;

	HASH_FIND(hh, m->threads, &tid, sizeof(tid), t);
	return t;
}

struct model_thread *model_thread_add(struct fr_model *m, struct model_process *p, pid_t tid)
{
	struct model_thread *t = model_thread_find(m, tid);

	if (t) {
		struct model_process *old = t->process;

		model_thread_remove(m, t);
		if (old != p && old->leader_dead && !old->threads)
			model_process_remove(m, old);
	}
	if (m->pool->bytes > m->pool->bytes_max)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	t->process = p;
	HASH_ADD(hh, m->threads, tid, sizeof(t->tid), t);
	if (!t->hh.tbl) {
		free(t);
		return NULL;
	}
	DL_APPEND(p->threads, t);
	m->pool->bytes += sizeof(*t);
	return t;
}

void model_thread_remove(struct fr_model *m, struct model_thread *t)
{
	HASH_DEL(m->threads, t);
	DL_DELETE(t->process->threads, t);
	fr_blob_unref(m->pool, t->comm);
	m->pool->bytes -= sizeof(*t);
	free(t);
}
