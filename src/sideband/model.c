// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The effect of each side-band record on the processes of the model.
 *
 *   FORK  another pid   A new process. An old process with this pid is removed. The new process gets the
 *                       maps, name and namespaces of its parent, unless flightrec made the record (misc
 *                       FORK_EXEC).
 *   FORK  same pid      A new thread.
 *   COMM  misc EXEC     The process loses its maps and all threads except the leader.
 *   EXIT  of a thread   The thread is removed.
 *   EXIT  of a leader   The process is removed when its last thread has exited, too. Until then, its other
 *                       threads still run in its maps.
 *
 * Any record of an unknown pid, except EXIT, adds a process with this pid: the FORK of this process was lost,
 * or is older than the recording.
 */
#include "sideband/model_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <utlist.h>

/* Returns whether PID is the id of a task. PID is 0 for the idle task or a task of another pid namespace, and
   -1 for a task that was reaped. */
static bool is_task(uint32_t pid)
{
	return (int32_t)pid > 0;
}

static struct model_process *find_process(const struct fr_model *m, uint32_t pid)
{
	return FR_HASH_FIND(m->processes, pid, (pid_t)pid);
}

static struct model_thread *find_thread(const struct fr_model *m, uint32_t tid)
{
	return FR_HASH_FIND(m->threads, tid, (pid_t)tid);
}

/* Returns NULL if there is no memory. */
static struct model_process *find_or_add_process(struct fr_model *m, uint32_t pid, uint64_t time_ns)
{
	struct model_process *p = find_process(m, pid);

	if (!p)
		p = MODEL_NEW(m, m->processes, pid, (pid_t)pid);
	if (p && p->seen_ns < time_ns)
		p->seen_ns = time_ns;
	return p;
}

static void remove_thread(struct fr_model *m, struct model_thread *t)
{
	DL_DELETE(t->process->threads, t);
	fr_blob_unref(m->pool, t->comm);
	MODEL_DELETE(m, m->threads, t);
}

static void remove_process(struct fr_model *m, struct model_process *p)
{
	while (p->threads)
		remove_thread(m, p->threads);
	fr_maps_unref(p->maps, m->pool);
	fr_blob_unref(m->pool, p->comm);
	fr_blob_unref(m->pool, p->namespaces);
	MODEL_DELETE(m, m->processes, p);
}

static void remove_process_if_dead(struct fr_model *m, struct model_process *p)
{
	if (p->leader_dead && !p->threads)
		remove_process(m, p);
}

/* Adds the thread TID to P. An old thread with the same tid is removed first. Returns NULL if there is no
   memory. */
static struct model_thread *add_thread(struct fr_model *m, struct model_process *p, uint32_t tid)
{
	struct model_thread *t = find_thread(m, tid);

	if (t) {
		struct model_process *old = t->process;

		remove_thread(m, t);
		if (old != p)
			remove_process_if_dead(m, old);
	}
	t = MODEL_NEW(m, m->threads, tid, (pid_t)tid);
	if (t) {
		t->process = p;
		DL_APPEND(p->threads, t);
	}
	return t;
}

/* Returns a reference to the name of the thread TID of the process PID. If the thread has no name, returns a
   reference to the name of the process, or NULL. */
static struct fr_blob *ref_comm(const struct fr_model *m, uint32_t pid, uint32_t tid)
{
	struct model_thread *t = tid == pid ? NULL : find_thread(m, tid);
	struct model_process *p;

	if (t && t->comm)
		return fr_blob_ref(t->comm);
	p = find_process(m, pid);
	return p ? fr_blob_ref(p->comm) : NULL;
}

static int replace_blob(struct fr_model *m, struct fr_blob **slot, const void *data, size_t len)
{
	struct fr_blob *blob = fr_blob_get(m->pool, data, len);

	if (!blob)
		return -ENOMEM;
	fr_blob_unref(m->pool, *slot);
	*slot = blob;
	return 0;
}

static int fork_thread(struct fr_model *m, const struct fr_record_task *r, uint64_t time_ns)
{
	struct model_process *stale, *p;
	struct model_thread *t;

	if (r->tid == r->pid)
		return find_or_add_process(m, r->pid, time_ns) ? 0 : -ENOMEM;
	stale = find_process(m, r->tid);
	if (stale)
		remove_process(m, stale);
	p = find_or_add_process(m, r->pid, time_ns);
	t = p ? add_thread(m, p, r->tid) : NULL;
	if (!t)
		return -ENOMEM;
	t->comm = ref_comm(m, r->ppid, r->ptid);
	return 0;
}

static int fork_process(struct fr_model *m, const struct fr_record_task *r, uint64_t time_ns)
{
	struct model_process *p = find_process(m, r->pid);
	struct model_thread *stale = find_thread(m, r->pid);
	const struct model_process *parent;

	if (p)
		remove_process(m, p);
	if (stale) {
		p = stale->process;
		remove_thread(m, stale);
		remove_process_if_dead(m, p);
	}
	p = find_or_add_process(m, r->pid, time_ns);
	if (!p)
		return -ENOMEM;
	p->ppid = (pid_t)r->ppid;
	parent = find_process(m, r->ppid);
	if (!parent || r->header.misc & PERF_RECORD_MISC_FORK_EXEC)
		return 0;
	p->maps = fr_maps_ref(parent->maps);
	p->namespaces = fr_blob_ref(parent->namespaces);
	p->comm = ref_comm(m, r->ppid, r->ptid);
	return 0;
}

static int apply_fork(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns)
{
	const struct fr_record_task *r = (const void *)h;

	if (!is_task(r->pid) || !is_task(r->tid))
		return 0;
	if (r->pid == r->ppid || r->tid != r->pid)
		return fork_thread(m, r, time_ns);
	return fork_process(m, r, time_ns);
}

static int apply_exit(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns)
{
	const struct fr_record_task *r = (const void *)h;
	struct model_process *p = find_process(m, r->pid);
	struct model_thread *t = r->tid == r->pid ? NULL : find_thread(m, r->tid);

	if (!p)
		return 0;
	if (r->tid == r->pid)
		p->leader_dead = true;
	else if (t && t->process == p)
		remove_thread(m, t);
	remove_process_if_dead(m, p);
	return 0;
}

static int apply_comm(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns)
{
	const struct fr_record_comm *r = (const void *)h;
	struct model_thread *t = NULL;
	struct model_process *p;

	if (!is_task(r->pid) || !is_task(r->tid))
		return 0;
	p = find_or_add_process(m, r->pid, time_ns);
	if (!p)
		return -ENOMEM;
	if (h->misc & PERF_RECORD_MISC_COMM_EXEC) {
		while (p->threads)
			remove_thread(m, p->threads);
		p->maps = fr_maps_unref(p->maps, m->pool);
		p->leader_dead = false;
	} else if (r->tid != r->pid) {
		t = find_thread(m, r->tid);
		if (!t || t->process != p)
			t = add_thread(m, p, r->tid);
		if (!t)
			return -ENOMEM;
	}
	return replace_blob(m, t ? &t->comm : &p->comm, r->comm, name_len);
}

static int apply_namespaces(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns)
{
	const struct fr_record_namespaces *r = (const void *)h;
	size_t room = (h->size - sizeof(*r)) / sizeof(r->link[0]);
	struct model_process *p;

	/* A thread can have other namespaces than its leader (setns), but no reader uses them. */
	if (!is_task(r->pid) || r->tid != r->pid || r->nr_namespaces > room ||
		r->nr_namespaces > MODEL_NAMESPACES_MAX)
		return 0;
	p = find_or_add_process(m, r->pid, time_ns);
	return p ? replace_blob(m, &p->namespaces, r->link, r->nr_namespaces * sizeof(r->link[0])) : -ENOMEM;
}

static int apply_mmap2(
	struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns)
{
	const struct fr_record_mmap2 *r = (const void *)h;
	const uint16_t mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	uint8_t key[MODEL_BACKING_FIXED + FR_EMIT_NAME_MAX];
	struct fr_map map = {.start = r->addr,
		.end = r->addr + r->len,
		.pgoff = r->pgoff,
		.prot = r->prot,
		.flags = r->flags};
	struct model_process *p;

	if (mode != PERF_RECORD_MISC_USER && mode != PERF_RECORD_MISC_CPUMODE_UNKNOWN)
		return 0; /* a map of a guest */
	if (!is_task(r->pid) || map.end <= map.start)
		return 0;
	p = find_or_add_process(m, r->pid, time_ns);
	if (!p)
		return -ENOMEM;
	name_len = FR_MIN(name_len, FR_EMIT_NAME_MAX);
	memcpy(key, &r->maj, offsetof(struct model_backing, has_build_id));
	key[offsetof(struct model_backing, has_build_id)] = !!(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID);
	memcpy(key + MODEL_BACKING_FIXED, r->filename, name_len);
	map.backing = fr_blob_get(m->pool, key, MODEL_BACKING_FIXED + name_len);
	if (!map.backing)
		return -ENOMEM;
	return fr_maps_insert(&p->maps, m->pool, &map);
}

static const struct {
	size_t fixed; /* bytes before the name; 0: the model ignores the type */
	int (*apply)(
		struct fr_model *m, const struct perf_event_header *h, size_t name_len, uint64_t time_ns);
} types[] = {
	[PERF_RECORD_FORK] = {sizeof(struct fr_record_task), apply_fork},
	[PERF_RECORD_EXIT] = {sizeof(struct fr_record_task), apply_exit},
	[PERF_RECORD_COMM] = {sizeof(struct fr_record_comm), apply_comm},
	[PERF_RECORD_MMAP] = {sizeof(struct fr_record_mmap), model_apply_kernel_mmap},
	[PERF_RECORD_MMAP2] = {sizeof(struct fr_record_mmap2), apply_mmap2},
	[PERF_RECORD_NAMESPACES] = {sizeof(struct fr_record_namespaces), apply_namespaces},
	[PERF_RECORD_KSYMBOL] = {sizeof(struct fr_record_ksymbol), model_apply_ksymbol},
	[PERF_RECORD_CGROUP] = {sizeof(struct fr_record_cgroup), model_apply_cgroup},
};

int fr_model_apply_foreign(
	struct fr_model *m, const struct perf_event_header *h, size_t tail_bytes, uint64_t time_ns)
{
	size_t fixed = h->type < FR_ARRAY_SIZE(types) ? types[h->type].fixed : 0;

	if (!fixed || h->size < fixed + tail_bytes)
		return 0;
	return types[h->type].apply(
		m, h, strnlen((const char *)h + fixed, h->size - fixed - tail_bytes), time_ns);
}

int fr_model_apply(struct fr_model *m, const struct perf_event_header *h)
{
	if (h->size < sizeof(*h) + sizeof(struct fr_sample_id))
		return 0;
	return fr_model_apply_foreign(m, h, sizeof(struct fr_sample_id), fr_record_time(h));
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
	if (!m)
		return NULL;
	while (m->processes)
		remove_process(m, m->processes);
	model_clear_kernel(m);
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
