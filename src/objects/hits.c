// SPDX-License-Identifier: GPL-2.0-or-later
#include "objects/hits.h"
#include "base/cleanup.h"
#include "perfdata/reader.h"
#include "perfdata/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* uthash's way out of an allocation that fails. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define RANGES_MAX (1u << 20)
#define OBJECTS_MAX (1u << 16)
#define PARENTS_MAX 16
#define SEEN (1u << 14) /* a power of two */

struct range {
	uint64_t start, end;
	struct object *object;
};

struct object {
	UT_hash_handle hh; /* by path and identity */
	struct fr_object o;
	char key[];
};

struct space {
	UT_hash_handle hh;
	pid_t pid, parent;
	struct range *v;
	size_t n, cap;
};

struct event_of {
	uint64_t id;
	const struct perf_event_attr *attr;
};

struct page {
	uint64_t number;
	size_t n_ranges; /* at that time: a map that has come since may be at that page */
	pid_t pid;
};

struct fr_hits_private {
	struct object *objects;
	struct space *spaces;
	size_t n_ranges;
	struct event_of *events;
	size_t n_events;
	struct page seen[SEEN]; /* looked up already */
	pid_t pid;		/* of the sample at hand */
};

struct fr_hits *fr_hits_free(struct fr_hits *h)
{
	struct fr_hits_private *p = h ? h->private : NULL;
	struct object *o, *next_object;
	struct space *s, *next_space;

	if (!h)
		return NULL;
	if (p) {
		HASH_ITER (hh, p->objects, o, next_object) {
			HASH_DEL(p->objects, o);
			free(o);
		}
		HASH_ITER (hh, p->spaces, s, next_space) {
			HASH_DEL(p->spaces, s);
			free(s->v);
			free(s);
		}
		free(p->events);
	}
	free(p);
	free(h->v);
	free(h);
	return NULL;
}

static struct space *space_of(struct fr_hits_private *p, pid_t pid, bool add)
{
	struct space *s;

	HASH_FIND(hh, p->spaces, &pid, sizeof(pid), s);
	if (s || !add)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->pid = pid;
	HASH_ADD(hh, p->spaces, pid, sizeof(s->pid), s);
	if (!s->hh.tbl) {
		free(s);
		return NULL;
	}
	return s;
}

static struct object *object_new(const struct fr_record_mmap2 *m, const char *key, size_t len)
{
	struct object *o = calloc(1, sizeof(*o) + len);

	if (!o)
		return NULL;
	memcpy(o->key, key, len);
	o->o = (struct fr_object){
		.path = o->key + 24, .pid = (pid_t)m->pid, .start = m->addr, .end = m->addr + m->len};
	if (m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		o->o.id_len = FR_MIN((size_t)m->build_id_size, sizeof(o->o.id));
		memcpy(o->o.id, m->build_id, o->o.id_len);
	} else {
		o->o.ino = m->ino;
	}
	return o;
}

/* RET is NULL where there are too many. */
static int object_of(/* NOLINT(readability-function-size): uthash's macros */
	struct fr_hits_private *p, const struct fr_record_mmap2 *m, struct object **ret)
{
	char key[24 + 4096];
	size_t len = 24 + strnlen(m->filename, sizeof(key) - 25) + 1;
	struct object *o;

	/* The bytes of the union: a build-id, or a device and an inode. */
	memcpy(key, &m->maj, 24);
	memcpy(key + 24, m->filename, len - 25);
	key[len - 1] = '\0';
	HASH_FIND(hh, p->objects, key, len, o);
	if (o || HASH_COUNT(p->objects) >= OBJECTS_MAX) {
		*ret = o;
		return 0;
	}
	o = object_new(m, key, len);
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

static int add_range(struct fr_hits *h, const struct fr_record_mmap2 *m)
{
	struct fr_hits_private *p = h->private;
	struct space *s = space_of(p, (pid_t)m->pid, true);
	struct object *o = NULL;
	int r = s ? object_of(p, m, &o) : -ENOMEM;

	if (r < 0)
		return r;
	if (!o || p->n_ranges >= RANGES_MAX) {
		h->cut = true;
		return 0;
	}
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 8;
		struct range *v = reallocarray(s->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n++] = (struct range){m->addr, m->addr + m->len, o};
	p->n_ranges++;
	return 0;
}

/* What has a file, or is the vdso. */
static bool is_object(const char *path)
{
	if (strcmp(path, "[vdso]") == 0)
		return true;
	return path[0] == '/' && path[1] != '/' && strncmp(path, "/anon_hugepage", 14) != 0 &&
	       strncmp(path, "/dev/zero", 9) != 0 && strncmp(path, "/SYSV", 5) != 0;
}

static int take_map(struct fr_hits *h, const struct fr_record_mmap2 *m)
{
	const char *end = (const char *)m + m->header.size - sizeof(struct fr_sample_id);

	if (m->filename >= end || !memchr(m->filename, '\0', (size_t)(end - m->filename)))
		return 0;
	if (!(m->prot & PROT_EXEC) || m->len == 0 || m->addr + m->len < m->addr || !is_object(m->filename))
		return 0;
	return add_range(h, m);
}

static int take_fork(struct fr_hits *h, const struct fr_record_task *t)
{
	struct space *s;

	if (t->pid == t->ppid || t->header.misc & PERF_RECORD_MISC_FORK_EXEC)
		return 0;
	s = space_of(h->private, (pid_t)t->pid, true);
	if (!s)
		return -ENOMEM;
	s->parent = (pid_t)t->ppid;
	return 0;
}

static void mark(struct fr_hits_private *p, uint64_t address)
{
	pid_t pid = p->pid;

	for (int depth = 0; depth < PARENTS_MAX && pid > 0; depth++) {
		const struct space *s = space_of(p, pid, false);

		if (!s)
			return;
		for (size_t i = 0; i < s->n; i++)
			if (address >= s->v[i].start && address < s->v[i].end)
				s->v[i].object->o.hit = true;
		pid = s->parent;
	}
}

static void take_address(void *ctx, uint64_t address, uint16_t mode)
{
	struct fr_hits *h = ctx;
	struct fr_hits_private *p = h->private;
	uint64_t number = address >> 12;
	struct page *seen = &p->seen[(number ^ number >> 14 ^ (uint64_t)p->pid * 0x9e3779b1u) & (SEEN - 1)];

	if (mode != PERF_RECORD_MISC_USER) {
		h->kernel |= mode == PERF_RECORD_MISC_KERNEL;
		return;
	}
	if (seen->number == number && seen->pid == p->pid && seen->n_ranges == p->n_ranges)
		return;
	*seen = (struct page){number, p->n_ranges, p->pid};
	mark(p, address);
}

static int by_id(const void *a, const void *b)
{
	const struct event_of *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int index_events(struct fr_hits_private *p, const struct fr_session *s)
{
	size_t n = 0;

	for (size_t e = 0; e < s->n_events; e++)
		n += s->events[e].n_ids;
	p->events = calloc(n ? n : 1, sizeof(*p->events));
	if (!p->events)
		return -ENOMEM;
	for (size_t e = 0; e < s->n_events; e++)
		for (size_t i = 0; i < s->events[e].n_ids; i++)
			p->events[p->n_events++] = (struct event_of){s->events[e].ids[i], &s->events[e].attr};
	qsort(p->events, p->n_events, sizeof(*p->events), by_id);
	return 0;
}

static void take_sample(struct fr_hits *h, const struct perf_event_header *record)
{
	struct fr_hits_private *p = h->private;
	const struct event_of key = {.id = fr_record_id(record)};
	const struct event_of *e = bsearch(&key, p->events, p->n_events, sizeof(key), by_id);

	p->pid = (pid_t)((const struct fr_sample *)record)->pid;
	if (e)
		fr_sample_for_each_address(e->attr, record, take_address, h);
}

static int take(struct fr_hits *h, const struct perf_event_header *record)
{
	if (!fr_record_is_whole(record, record->size))
		return 0;
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		take_sample(h, record);
		return 0;
	case PERF_RECORD_MMAP2:
		return take_map(h, (const void *)record);
	case PERF_RECORD_FORK:
		return take_fork(h, (const void *)record);
	default:
		return 0;
	}
}

static int collect(struct fr_hits *h)
{
	const struct fr_hits_private *p = h->private;

	h->v = calloc(HASH_COUNT(p->objects) + 1, sizeof(struct fr_object *));
	if (!h->v)
		return -ENOMEM;
	for (struct object *o = p->objects; o; o = o->hh.next)
		if (o->o.hit)
			h->v[h->n++] = &o->o;
	return 0;
}

/* The events' attrs are the reader's, and are of no use once it is gone. */
static int read_all(struct fr_hits *h, struct fr_reader *reader)
{
	const struct perf_event_header *record;
	int r = index_events(h->private, fr_reader_session(reader));

	while (r == 0 && (r = fr_reader_next(reader, &record, NULL)) == 1)
		r = take(h, record);
	return r < 0 ? r : collect(h);
}

int fr_hits_read(const char *path, struct fr_hits **ret, struct fr_diag *d)
{
	struct fr_hits *h = calloc(1, sizeof(*h));
	struct fr_reader *reader = NULL;
	int r = h ? 0 : -ENOMEM;

	if (r == 0) {
		h->private = calloc(1, sizeof(*h->private));
		r = h->private ? fr_reader_open(path, &reader, d) : -ENOMEM;
	}
	if (r == 0)
		r = read_all(h, reader);
	fr_reader_free(reader);
	if (r < 0) {
		fr_hits_free(h);
		return fr_fail_errno(d, r, NULL, "cannot look through %s", path);
	}
	*ret = h;
	return 0;
}
