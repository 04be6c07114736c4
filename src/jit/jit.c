// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A map record of anonymous memory covers whatever a reader knew of at that place: so our records follow each
 * of them, with the same time and behind it in the file. Functions of a jitdump come one by one as well, each
 * at the time at which it was written, so that of two at one address each has its own samples.
 */

#include "jit/jit.h"
#include "jit/source.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "sideband/emit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* uthash's way out of an allocation that fails. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Of one dump. */
#define PROCESSES_MAX 4096u
#define LOAD_NS_MAX (2 * FR_NSEC_PER_SEC)
#define OBJECT_BYTES_MAX (512ull << 20)
#define RECORD_BYTES_MAX (32u << 20)
#define TEXT 0x1000u

struct process {
	UT_hash_handle hh;
	pid_t pid;
	bool looked_for_map;
	struct jit_source *sources;
};

struct fr_jit {
	int dirfd, objects_fd; /* the latter -1: not made yet */
	char *directory, *name;
	gid_t gid;
	struct process *processes;
	uint64_t load_ns, record_bytes;
	bool left_out; /* files were not looked for: too many processes, or no time any more */
	struct fr_jit_stats stats;
};

int fr_jit_new(const struct fr_jit_config *config, struct fr_jit **ret)
{
	struct fr_jit *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	*j = (struct fr_jit){.dirfd = config->dirfd,
		.objects_fd = -1,
		.directory = strdup(config->directory),
		.name = strdup(config->name),
		.gid = config->gid};
	if (!j->directory || !j->name) {
		fr_jit_free(j);
		return -ENOMEM;
	}
	*ret = j;
	return 0;
}

struct fr_jit *fr_jit_free(struct fr_jit *j)
{
	struct process *p, *next;

	if (!j)
		return NULL;
	HASH_ITER (hh, j->processes, p, next) {
		struct jit_source *s = p->sources;

		while (s) {
			struct jit_source *after = s->next;

			jit_source_free(s);
			s = after;
		}
		HASH_DEL(j->processes, p);
		free(p);
	}
	if (j->objects_fd >= 0)
		close(j->objects_fd);
	free(j->directory);
	free(j->name);
	free(j);
	return NULL;
}

/* NULL: no memory, or more processes than we look at. */
static struct process *process_of(struct fr_jit *j, pid_t pid)
{
	struct process *p;

	HASH_FIND(hh, j->processes, &pid, sizeof(pid), p);
	if (p || HASH_COUNT(j->processes) >= PROCESSES_MAX)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD(hh, j->processes, pid, sizeof(p->pid), p);
	if (!p->hh.tbl) {
		free(p);
		return NULL;
	}
	return p;
}

static int open_objects(struct fr_jit *j)
{
	if (j->objects_fd >= 0)
		return 0;
	if (mkdirat(j->dirfd, j->name, 0750) < 0 && errno != EEXIST)
		return -errno;
	j->objects_fd = openat(j->dirfd, j->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (j->objects_fd < 0)
		return -errno;
	if (j->gid != (gid_t)-1 && fchown(j->objects_fd, (uid_t)-1, j->gid) < 0)
		return -errno;
	return 0;
}

static int write_file(struct fr_jit *j, const char *name, const struct fr_buf *b)
{
	_cleanup_close_ int fd = -1;
	int r = open_objects(j);

	if (r < 0)
		return r;
	fd = openat(j->objects_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	r = fr_write_all(fd, b->data, b->len);
	if (r == 0 && j->gid != (gid_t)-1 && fchown(fd, (uid_t)-1, j->gid) < 0)
		r = -errno;
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(j->objects_fd, name, 0);
	return r;
}

/* The source's object, named by process and content: two dumps, or a merge of them, can share it. */
static int write_object(struct fr_jit *j, pid_t pid, struct jit_source *s)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char name[NAME_MAX];
	int n, r = jit_object_make(&s->code, &b, &s->base, s->id);

	if (r < 0)
		return r;
	if (j->stats.bytes + b.len > OBJECT_BYTES_MAX)
		return -EFBIG;
	n = snprintf(name, sizeof(name), "jitted-%d-", pid);
	for (size_t i = 0; i < 12; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%02x", s->id[i < 8 ? i : i + 8]);
	snprintf(name + n, sizeof(name) - (size_t)n, ".so");
	r = write_file(j, name, &b);
	if (r < 0)
		return r;
	if (asprintf(&s->path, "%s/%s/%s", j->directory, j->name, name) < 0) {
		s->path = NULL;
		return -ENOMEM;
	}
	fr_buf_deinit(&s->code.file);
	fr_buf_deinit(&s->code.names);
	j->stats.objects++;
	j->stats.functions += s->code.n;
	j->stats.bytes += b.len;
	return 0;
}

/* 0 also where nothing comes of it. */
static int adopt(struct fr_jit *j, struct process *p, struct jit_source *s)
{
	int r = write_object(j, p->pid, s);

	j->stats.cut += s->code.cut || r < 0;
	/* One that failed stays, so that it is not tried again with each map. */
	s->next = p->sources;
	p->sources = s;
	return r == -ENOMEM ? r : 0;
}

static bool has_time(struct fr_jit *j)
{
	j->left_out |= j->load_ns > LOAD_NS_MAX;
	return j->load_ns <= LOAD_NS_MAX;
}

static int load_map(struct fr_jit *j, struct process *p, uint64_t event_id)
{
	uint64_t begin = fr_monotonic_ns();
	struct jit_source *s = NULL;
	int r;

	if (p->looked_for_map || !has_time(j))
		return 0;
	p->looked_for_map = true;
	r = jit_source_perf_map(p->pid, &s);
	if (r == 0) {
		s->event_id = event_id;
		r = adopt(j, p, s);
	}
	j->load_ns += fr_monotonic_ns() - begin;
	return r < 0 ? r : 0;
}

static int load_dump(struct fr_jit *j, struct process *p, const struct fr_record_mmap2 *m)
{
	uint64_t begin = fr_monotonic_ns();
	struct jit_source *s = NULL;
	int r;

	for (const struct jit_source *have = p->sources; have; have = have->next)
		if (have->ino && have->ino == m->ino)
			return 0;
	if (!has_time(j))
		return 0;
	r = jit_source_dump(m, &s);
	if (r == 0) {
		s->event_id = fr_record_id(&m->header);
		s->from_ns = fr_record_time(&m->header);
		r = adopt(j, p, s);
	}
	j->load_ns += fr_monotonic_ns() - begin;
	return r < 0 ? r : 0;
}

static int emit(struct fr_jit *j, const struct jit_source *s, pid_t pid, const struct fr_map_range *range,
	uint64_t time_ns, struct fr_buf *ret)
{
	struct fr_emit e = {ret, time_ns, s->event_id};
	struct fr_backing b = {.has_build_id = true};
	size_t before = ret->len;
	int r;

	if (j->record_bytes > RECORD_BYTES_MAX)
		return 0;
	b.build_id.size = JIT_BUILD_ID_SIZE;
	memcpy(b.build_id.bytes, s->id, JIT_BUILD_ID_SIZE);
	r = fr_emit_mmap2(&e, pid, range, &b, s->path, strlen(s->path));
	j->record_bytes += ret->len - before;
	return r;
}

static int emit_function(struct fr_jit *j, const struct jit_source *s, size_t i, pid_t pid, uint64_t time_ns,
	struct fr_buf *ret)
{
	const struct jit_symbol *f = &s->code.v[i];
	const struct fr_map_range range = {f->addr, f->size, f->offset, PROT_READ | PROT_EXEC, MAP_PRIVATE};

	return emit(j, s, pid, &range, time_ns, ret);
}

/* What S knows of the memory that M is for. */
static int cover(
	struct fr_jit *j, const struct jit_source *s, const struct fr_record_mmap2 *m, struct fr_buf *ret)
{
	uint64_t time_ns = fr_record_time(&m->header), start = m->addr, end = m->addr + m->len;
	const struct jit_symbol *first = &s->code.v[0], *last = &s->code.v[s->code.n - 1];
	int r = 0;

	if (!s->path || time_ns < s->from_ns || end <= start)
		return 0;
	for (size_t i = 0; s->ino && i < s->code.n && first[i].time_ns <= time_ns && r == 0; i++)
		if (first[i].addr < end && first[i].addr + first[i].size > start)
			r = emit_function(j, s, i, (pid_t)m->pid, time_ns, ret);
	if (s->ino)
		return r;
	start = FR_MAX(start, s->base);
	end = FR_MIN(end, last->addr + last->size);
	if (start >= end)
		return 0;
	return emit(j, s, (pid_t)m->pid,
		&(struct fr_map_range){
			start, end - start, start - s->base + TEXT, PROT_READ | PROT_EXEC, MAP_PRIVATE},
		time_ns, ret);
}

/* Memory that no file's code is in, by the names that the kernel has for it. */
static bool is_anonymous(const char *name)
{
	static const char *const prefixes[] = {
		"//anon", "/anon_hugepage", "/dev/zero", "/memfd:", "/SYSV", "[heap]", "[stack", "[anon"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* ".../jit-1234.dump", also when its name is gone. */
static bool is_jitdump(const char *name)
{
	const char *slash = strrchr(name, '/'), *dot;

	if (!slash || strncmp(slash + 1, "jit-", 4) != 0)
		return false;
	dot = strstr(slash, ".dump");
	return dot && (!dot[5] || strcmp(dot + 5, " (deleted)") == 0);
}

static int follow_one(struct fr_jit *j, const struct fr_record_mmap2 *m, struct fr_buf *ret)
{
	bool dump = is_jitdump(m->filename);
	struct process *p;
	int r = 0;

	if (!(m->prot & PROT_EXEC) || (!dump && !is_anonymous(m->filename)))
		return 0;
	p = process_of(j, (pid_t)m->pid);
	if (!p) {
		j->left_out = true;
		return 0;
	}
	if (dump)
		return load_dump(j, p, m);
	r = load_map(j, p, fr_record_id(&m->header));
	for (const struct jit_source *s = p->sources; s && r == 0; s = s->next)
		r = cover(j, s, m, ret);
	return r;
}

/* Whether the NAME of M has its NUL inside the record. */
static bool ends(const struct fr_record_mmap2 *m)
{
	const char *end = (const char *)m + m->header.size - sizeof(struct fr_sample_id);

	return m->filename < end && memchr(m->filename, '\0', (size_t)(end - m->filename));
}

int fr_jit_follow(struct fr_jit *j, const void *records, size_t len, struct fr_buf *ret)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && fr_record_is_whole((const char *)records + at, len - at)) {
		const struct perf_event_header *h = (const void *)((const char *)records + at);

		if (h->type == PERF_RECORD_MMAP2 && ends((const void *)h) &&
			(h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER)
			r = follow_one(j, (const void *)h, ret);
		at += h->size;
	}
	return r;
}

int fr_jit_until(struct fr_jit *j, uint64_t until_ns, struct fr_buf *ret)
{
	int r = 0;

	for (const struct process *p = j->processes; p; p = p->hh.next)
		for (struct jit_source *s = p->sources; s; s = s->next)
			while (s->ino && s->path && r == 0 && s->given < s->code.n &&
				FR_MAX(s->code.v[s->given].time_ns, s->from_ns) <= until_ns) {
				r = emit_function(j, s, s->given, p->pid,
					FR_MAX(s->code.v[s->given].time_ns, s->from_ns), ret);
				s->given++;
			}
	return r;
}

int fr_jit_finish(struct fr_jit *j, struct fr_jit_stats *ret)
{
	if (j->objects_fd >= 0 && fsync(j->objects_fd) < 0)
		return -errno;
	if (ret) {
		*ret = j->stats;
		ret->cut += j->left_out + (j->record_bytes > RECORD_BYTES_MAX);
	}
	return 0;
}

void fr_jit_discard(struct fr_jit *j)
{
	for (const struct process *p = j->processes; p && j->objects_fd >= 0; p = p->hh.next)
		for (const struct jit_source *s = p->sources; s; s = s->next)
			if (s->path)
				(void)unlinkat(j->objects_fd, strrchr(s->path, '/') + 1, 0);
	if (j->objects_fd >= 0)
		(void)unlinkat(j->dirfd, j->name, AT_REMOVEDIR);
}
