// SPDX-License-Identifier: GPL-2.0-or-later
#include "objects/hits.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "perfdata/reader.h"
#include "perfdata/sample.h"
#include "sideband/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define RANGES_MAX (1u << 20)
#define OBJECTS_MAX (1u << 16)
#define PARENTS_MAX 16
#define SEEN (1u << 14) /* a power of two */
#define BACKING 24	/* bytes of the union in an MMAP2: a build-id, or a device and an inode */

struct range {
	uint64_t start, end;
	struct object *object;
};

struct object {
	UT_hash_handle hh; /* by backing and path */
	struct fr_object o;
	char key[];
};

struct process {
	UT_hash_handle hh;
	pid_t pid, parent;
	struct fr_buf ranges; /* struct range */
};

struct page {
	uint64_t number;
	/* Value of hits.n_ranges when the page was marked. If hits.n_ranges has another value now, there are
	   newer maps, and the page is looked up again. */
	size_t n_ranges;
	pid_t pid;
};

struct hits {
	struct fr_hits result;
	struct fr_reader *reader;
	struct object *objects;
	struct process *processes;
	size_t n_ranges;
	struct page seen[SEEN]; /* pages whose objects are marked already; index: a hash */
	pid_t pid;		/* process of the current sample */
};

static void free_process(struct process *p)
{
	fr_buf_deinit(&p->ranges);
	free(p);
}

struct fr_hits *fr_hits_free(struct fr_hits *h)
{
	struct hits *p = (struct hits *)h;

	if (!p)
		return NULL;
	FR_HASH_CLEAR(p->objects, free);
	FR_HASH_CLEAR(p->processes, free_process);
	free(p->result.v);
	free(p);
	return NULL;
}

/* Returns the process with this PID; or NULL if there is no memory. */
static struct process *find_or_add_process(struct hits *p, uint32_t pid)
{
	struct process *process = FR_HASH_FIND(p->processes, pid, (pid_t)pid);

	return process ? process : FR_HASH_NEW(p->processes, pid, (pid_t)pid);
}

static struct object *new_object(const struct fr_record_mmap2 *m, const char *key, size_t len)
{
	struct object *o = calloc(1, sizeof(*o) + len);

	if (!o)
		return NULL;
	memcpy(o->key, key, len);
	o->o = (struct fr_object){
		.path = o->key + BACKING, .pid = (pid_t)m->pid, .start = m->addr, .end = m->addr + m->len};
	if (m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		o->o.id_len = FR_MIN((size_t)m->build_id_size, sizeof(o->o.id));
		memcpy(o->o.id, m->build_id, o->o.id_len);
	} else {
		o->o.ino = m->ino;
	}
	return o;
}

/* RET gets the object of M; or NULL if the object is new and there are OBJECTS_MAX objects already. Returns 0
   or -ENOMEM. */
static int find_or_add_object(/* NOLINT(readability-function-size): uthash's macros */
	struct hits *p, const struct fr_record_mmap2 *m, struct object **ret)
{
	char key[BACKING + 4096];
	size_t len = BACKING + strnlen(m->filename, sizeof(key) - BACKING - 1) + 1;
	struct object *o;

	memcpy(key, &m->maj, BACKING);
	memcpy(key + BACKING, m->filename, len - BACKING - 1);
	key[len - 1] = '\0';
	HASH_FIND(hh, p->objects, key, len, o);
	*ret = o;
	if (o || HASH_COUNT(p->objects) >= OBJECTS_MAX)
		return 0;
	o = new_object(m, key, len);
	if (!o)
		return -ENOMEM;
	HASH_ADD_KEYPTR(hh, p->objects, o->key, len, o);
	if (!o->hh.tbl) {
		free(o);
		return -ENOMEM;
	}
	*ret = o;
	return 0;
}

/* PATH is the name of a map. Returns whether the map is of a file (not of anonymous or shared memory), or is
   the vdso. */
static bool is_object(const char *path)
{
	if (strcmp(path, "[vdso]") == 0)
		return true;
	return path[0] == '/' && path[1] != '/' && strncmp(path, "/anon_hugepage", 14) != 0 &&
	       strncmp(path, "/dev/zero", 9) != 0 && strncmp(path, "/SYSV", 5) != 0;
}

static int apply_map(struct hits *p, const struct fr_record_mmap2 *m)
{
	const char *end = (const char *)m + m->header.size - sizeof(struct fr_sample_id);
	struct range range = {m->addr, m->addr + m->len, NULL};
	struct process *process;
	int r;

	if (m->filename >= end || !memchr(m->filename, '\0', (size_t)(end - m->filename)))
		return 0;
	if (!(m->prot & PROT_EXEC) || range.end <= range.start || !is_object(m->filename))
		return 0;
	process = find_or_add_process(p, m->pid);
	r = process ? find_or_add_object(p, m, &range.object) : -ENOMEM;
	if (r < 0 || !range.object || p->n_ranges >= RANGES_MAX)
		return r;
	p->n_ranges++;
	return fr_buf_append(&process->ranges, &range, sizeof(range));
}

static int apply_fork(struct hits *p, const struct fr_record_task *t)
{
	struct process *process;

	if (t->pid == t->ppid || t->header.misc & PERF_RECORD_MISC_FORK_EXEC)
		return 0;
	process = find_or_add_process(p, t->pid);
	if (!process)
		return -ENOMEM;
	process->parent = (pid_t)t->ppid;
	return 0;
}

/* Marks the objects at ADDRESS in the process of the current sample. A child process inherits the maps of its
   parent, so this function also searches the parents. */
static void hit_objects(struct hits *p, uint64_t address)
{
	pid_t pid = p->pid;

	for (int depth = 0; depth < PARENTS_MAX && pid > 0; depth++) {
		const struct process *process = FR_HASH_FIND(p->processes, pid, pid);
		const struct range *v;

		if (!process)
			return;
		v = (const void *)process->ranges.data;
		for (size_t i = 0; i < process->ranges.len / sizeof(*v); i++)
			if (address >= v[i].start && address < v[i].end)
				v[i].object->o.hit = true;
		pid = process->parent;
	}
}

static void apply_address(void *ctx, uint64_t address, uint16_t mode)
{
	struct hits *p = ctx;
	uint64_t number = address >> 12;
	struct page *seen = &p->seen[(number ^ number >> 14 ^ (uint64_t)p->pid * 0x9e3779b1u) & (SEEN - 1)];

	if (mode != PERF_RECORD_MISC_USER) {
		p->result.kernel |= mode == PERF_RECORD_MISC_KERNEL;
		return;
	}
	if (seen->number == number && seen->pid == p->pid && seen->n_ranges == p->n_ranges)
		return;
	*seen = (struct page){number, p->n_ranges, p->pid};
	hit_objects(p, address);
}

static void apply_sample(struct hits *p, const struct perf_event_header *record)
{
	const struct fr_session *session = fr_reader_session(p->reader);
	uint32_t e = fr_reader_find_event(p->reader, fr_record_id(record));

	p->pid = (pid_t)((const struct fr_sample *)record)->pid;
	if (e != FR_ID_UNKNOWN)
		fr_sample_for_each_address(&session->events[e].attr, record, apply_address, p);
}

static int apply(struct hits *p, const struct perf_event_header *record)
{
	if (!fr_record_is_whole(record, record->size))
		return 0;
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		apply_sample(p, record);
		return 0;
	case PERF_RECORD_MMAP2:
		return apply_map(p, (const void *)record);
	case PERF_RECORD_FORK:
		return apply_fork(p, (const void *)record);
	default:
		return 0;
	}
}

static int collect_hits(struct hits *p)
{
	struct fr_hits *h = &p->result;

	h->v = calloc(HASH_COUNT(p->objects) + 1, sizeof(struct fr_object *));
	if (!h->v)
		return -ENOMEM;
	for (struct object *o = p->objects; o; o = o->hh.next)
		if (o->o.hit)
			h->v[h->n++] = &o->o;
	return 0;
}

static int read_all(struct hits *p)
{
	const struct perf_event_header *record;
	int r = 0;

	while (r == 0 && (r = fr_reader_next(p->reader, &record, NULL)) == 1)
		r = apply(p, record);
	return r < 0 ? r : collect_hits(p);
}

int fr_hits_read(const char *path, struct fr_hits **ret, struct fr_diag *d)
{
	struct hits *p = calloc(1, sizeof(*p));
	int r;

	fr_thread_assert_may_wait();
	r = p ? fr_reader_open(path, &p->reader, d) : -ENOMEM;
	if (r == 0)
		r = read_all(p);
	if (p)
		p->reader = fr_reader_free(p->reader);
	if (r < 0) {
		fr_hits_free((struct fr_hits *)p);
		return fr_fail_errno(d, r, NULL, "cannot read the samples of %s", path);
	}
	*ret = &p->result;
	return 0;
}
