// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What each side-band record does to the model.
 *
 *   FORK  another pid   a new process in place of one of that pid; it starts with its parent's maps, name and
 *                       namespaces, unless the record is a scan's (misc FORK_EXEC), which says all by itself
 *   FORK  same pid      a new thread
 *   COMM  misc EXEC     the process starts afresh: no maps, no threads but the leader
 *   EXIT  of a thread   the thread goes
 *   EXIT  of a leader   the process goes with its last thread: a leader may exit first, and then the others
 *                       still run in its maps
 *   anything else of a pid that is not known makes that process known: its FORK was lost, or is older than
 *                       we are
 */
#include "sideband/model_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Length of the string that ends a record in front of the sample id; -1: the record has not even its fixed
 * part. */
static ssize_t name_length(const struct perf_event_header *h, size_t fixed)
{
	if (h->size < fixed + sizeof(struct fr_sample_id))
		return -1;
	return (ssize_t)strnlen((const char *)h + fixed, h->size - fixed - sizeof(struct fr_sample_id));
}

/* Tasks with pid 0 (idle, or of another pid namespace) and -1 (already reaped) are nobody in particular. */
static bool is_task(uint32_t pid)
{
	return (int32_t)pid > 0;
}

static struct model_process *process_findnew(struct fr_model *m, uint32_t pid, uint64_t time_ns)
{
	struct model_process *p = model_process_find(m, (pid_t)pid);

	if (!p)
		p = model_process_add(m, (pid_t)pid);
	if (p && p->seen_ns < time_ns)
		p->seen_ns = time_ns;
	return p;
}

static void reap(struct fr_model *m, struct model_process *p)
{
	if (p->leader_dead && !p->threads)
		model_process_remove(m, p);
}

static void thread_gone(struct fr_model *m, struct model_thread *t)
{
	struct model_process *p = t->process;

	model_thread_remove(m, t);
	reap(m, p);
}

static const struct fr_blob *comm_of(const struct fr_model *m, pid_t pid, pid_t tid)
{
	struct model_thread *t = tid == pid ? NULL : model_thread_find(m, tid);
	struct model_process *p;

	if (t && t->comm)
		return t->comm;
	p = model_process_find(m, pid);
	return p ? p->comm : NULL;
}

static int fork_thread(struct fr_model *m, const struct fr_record_task *r, uint64_t time_ns)
{
	struct model_process *stale, *p;
	struct model_thread *t;

	if (r->tid == r->pid)
		return process_findnew(m, r->pid, time_ns) ? 0 : -ENOMEM;
	stale = model_process_find(m, (pid_t)r->tid);
	if (stale)
		model_process_remove(m, stale);
	p = process_findnew(m, r->pid, time_ns);
	if (!p)
		return -ENOMEM;
	t = model_thread_add(m, p, (pid_t)r->tid);
	if (!t)
		return -ENOMEM;
	t->comm = fr_blob_ref((struct fr_blob *)comm_of(m, (pid_t)r->ppid, (pid_t)r->ptid));
	return 0;
}

static int fork_process(struct fr_model *m, const struct fr_record_task *r, uint64_t time_ns)
{
	bool clone = !(r->header.misc & PERF_RECORD_MISC_FORK_EXEC);
	struct model_process *p = model_process_find(m, (pid_t)r->pid);
	struct model_thread *stale = model_thread_find(m, (pid_t)r->pid);
	const struct model_process *parent;

	if (p)
		model_process_remove(m, p);
	if (stale)
		thread_gone(m, stale);
	p = process_findnew(m, r->pid, time_ns);
	if (!p)
		return -ENOMEM;
	p->ppid = (pid_t)r->ppid;
	parent = model_process_find(m, p->ppid);
	if (!clone || !parent)
		return 0;
	p->maps = fr_maps_ref(parent->maps);
	p->namespaces = fr_blob_ref(parent->namespaces);
	p->comm = fr_blob_ref((struct fr_blob *)comm_of(m, p->ppid, (pid_t)r->ptid));
	return 0;
}

static int apply_fork(struct fr_model *m, const struct fr_record_task *r, uint64_t time_ns)
{
	if (!is_task(r->pid) || !is_task(r->tid))
		return 0;
	if (r->pid == r->ppid || r->tid != r->pid)
		return fork_thread(m, r, time_ns);
	return fork_process(m, r, time_ns);
}

static void apply_exit(struct fr_model *m, const struct fr_record_task *r)
{
	struct model_process *p = model_process_find(m, (pid_t)r->pid);
	struct model_thread *t;

	if (!p)
		return;
	t = r->tid == r->pid ? NULL : model_thread_find(m, (pid_t)r->tid);
	if (r->tid == r->pid)
		p->leader_dead = true;
	else if (t && t->process == p)
		model_thread_remove(m, t);
	reap(m, p);
}

static int apply_comm(struct fr_model *m, const struct fr_record_comm *r, size_t len, uint64_t time_ns)
{
	struct model_process *p;
	struct model_thread *t = NULL;
	struct fr_blob *comm, **slot;

	if (!is_task(r->pid) || !is_task(r->tid))
		return 0;
	p = process_findnew(m, r->pid, time_ns);
	if (!p)
		return -ENOMEM;
	if (r->header.misc & PERF_RECORD_MISC_COMM_EXEC) {
		while (p->threads)
			model_thread_remove(m, p->threads);
		p->maps = fr_maps_unref(p->maps, m->pool);
		p->leader_dead = false;
	} else if (r->tid != r->pid) {
		t = model_thread_find(m, (pid_t)r->tid);
		if (!t || t->process != p)
			t = model_thread_add(m, p, (pid_t)r->tid);
		if (!t)
			return -ENOMEM;
	}
	comm = fr_blob_get(m->pool, r->comm, len);
	if (!comm)
		return -ENOMEM;
	slot = t ? &t->comm : &p->comm;
	fr_blob_unref(m->pool, *slot);
	*slot = comm;
	return 0;
}

static int apply_namespaces(struct fr_model *m, const struct fr_record_namespaces *r, uint64_t time_ns)
{
	size_t room = (r->header.size - sizeof(*r) - sizeof(struct fr_sample_id)) / sizeof(r->link[0]);
	struct model_process *p;
	struct fr_blob *links;

	/* Threads may differ from their leader (setns); no reader asks for that. */
	if (!is_task(r->pid) || r->tid != r->pid || r->nr_namespaces > room ||
		r->nr_namespaces > MODEL_NAMESPACES_MAX)
		return 0;
	p = process_findnew(m, r->pid, time_ns);
	if (!p)
		return -ENOMEM;
	links = fr_blob_get(m->pool, r->link, r->nr_namespaces * sizeof(r->link[0]));
	if (!links)
		return -ENOMEM;
	fr_blob_unref(m->pool, p->namespaces);
	p->namespaces = links;
	return 0;
}

struct mmap_event {
	uint32_t pid;
	uint16_t misc;
	struct fr_map_range range;
	struct fr_backing backing;
	const char *name;
	size_t name_len;
};

static int apply_user_map(struct fr_model *m, const struct mmap_event *e, uint64_t time_ns)
{
	uint8_t key[MODEL_BACKING_FIXED + FR_EMIT_NAME_MAX];
	size_t name_len = e->name_len < FR_EMIT_NAME_MAX ? e->name_len : FR_EMIT_NAME_MAX;
	struct fr_map map = {.start = e->range.addr,
		.end = e->range.addr + e->range.len,
		.pgoff = e->range.pgoff,
		.prot = e->range.prot,
		.flags = e->range.flags};
	struct model_process *p;

	if (!is_task(e->pid) || map.end <= map.start)
		return 0;
	p = process_findnew(m, e->pid, time_ns);
	if (!p)
		return -ENOMEM;
	memcpy(key, e->backing.raw, sizeof(e->backing.raw));
	key[offsetof(struct model_backing, has_build_id)] = e->backing.has_build_id;
	memcpy(key + MODEL_BACKING_FIXED, e->name, name_len);
	map.backing = fr_blob_get(m->pool, key, MODEL_BACKING_FIXED + name_len);
	if (!map.backing)
		return -ENOMEM;
	return fr_maps_insert(&p->maps, m->pool, &map);
}

static int apply_mmap(struct fr_model *m, const struct mmap_event *e, uint64_t time_ns)
{
	switch (e->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return model_apply_kernel_map(m, &e->range, e->name, e->name_len);
	case PERF_RECORD_MISC_USER:
	case PERF_RECORD_MISC_CPUMODE_UNKNOWN:
		return apply_user_map(m, e, time_ns);
	default: /* a guest's */
		return 0;
	}
}

static int apply_mmap1(struct fr_model *m, const struct fr_record_mmap *r, size_t len, uint64_t time_ns)
{
	struct mmap_event e = {.pid = r->pid,
		.misc = r->header.misc,
		.range = {.addr = r->addr, .len = r->len, .pgoff = r->pgoff, .flags = MAP_PRIVATE},
		.name = r->filename,
		.name_len = len};

	e.range.prot = r->header.misc & PERF_RECORD_MISC_MMAP_DATA ? PROT_READ : PROT_READ | PROT_EXEC;
	return apply_mmap(m, &e, time_ns);
}

static int apply_mmap2(struct fr_model *m, const struct fr_record_mmap2 *r, size_t len, uint64_t time_ns)
{
	struct mmap_event e = {.pid = r->pid,
		.misc = r->header.misc,
		.range = {r->addr, r->len, r->pgoff, r->prot, r->flags},
		.name = r->filename,
		.name_len = len};

	e.backing.has_build_id = r->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
	memcpy(e.backing.raw, &r->maj, sizeof(e.backing.raw));
	return apply_mmap(m, &e, time_ns);
}

/* Fixed part of the types that we take in, 0 for others. */
static size_t fixed_size(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return sizeof(struct fr_record_task);
	case PERF_RECORD_COMM:
		return sizeof(struct fr_record_comm);
	case PERF_RECORD_MMAP:
		return sizeof(struct fr_record_mmap);
	case PERF_RECORD_MMAP2:
		return sizeof(struct fr_record_mmap2);
	case PERF_RECORD_NAMESPACES:
		return sizeof(struct fr_record_namespaces);
	case PERF_RECORD_KSYMBOL:
		return sizeof(struct fr_record_ksymbol);
	case PERF_RECORD_CGROUP:
		return sizeof(struct fr_record_cgroup);
	default:
		return 0;
	}
}

int fr_model_apply(struct fr_model *m, const struct perf_event_header *h)
{
	size_t fixed = fixed_size(h->type);
	ssize_t len = fixed ? name_length(h, fixed) : -1;
	uint64_t t;

	if (len < 0)
		return 0;
	t = fr_record_time(h);
	switch (h->type) {
	case PERF_RECORD_FORK:
		return apply_fork(m, (const void *)h, t);
	case PERF_RECORD_EXIT:
		apply_exit(m, (const void *)h);
		return 0;
	case PERF_RECORD_COMM:
		return apply_comm(m, (const void *)h, (size_t)len, t);
	case PERF_RECORD_MMAP:
		return apply_mmap1(m, (const void *)h, (size_t)len, t);
	case PERF_RECORD_MMAP2:
		return apply_mmap2(m, (const void *)h, (size_t)len, t);
	case PERF_RECORD_NAMESPACES:
		return apply_namespaces(m, (const void *)h, t);
	case PERF_RECORD_KSYMBOL:
		return model_apply_ksymbol(m, (const void *)h, (size_t)len, t);
	default:
		return model_apply_cgroup(m, (const void *)h, (size_t)len);
	}
}

int fr_model_new(struct fr_blob_pool *pool, struct fr_model **ret)
{
	struct fr_model *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->pool = pool ? pool : &m->own;
	m->pool->bytes_max = MODEL_BYTES_MAX;
	*ret = m;
	return 0;
}

struct fr_model *fr_model_free(struct fr_model *m)
{
	struct model_process *p, *next;

	if (!m)
		return NULL;
	HASH_ITER (hh, m->processes, p, next)
		model_process_remove(m, p);
	model_kernel_clear(m);
	free(m);
	return NULL;
}

void fr_model_stats(const struct fr_model *m, struct fr_model_stats *ret)
{
	*ret = (struct fr_model_stats){
		.processes = HASH_COUNT(m->processes),
		.threads = HASH_COUNT(m->threads) + HASH_COUNT(m->processes),
		.bytes = m->pool->bytes,
	};
	for (const struct model_process *p = m->processes; p; p = p->hh.next)
		ret->maps += p->maps ? p->maps->n : 0;
}
