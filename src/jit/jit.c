// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For a reader, a map record of anonymous memory replaces all older maps of this memory. So after each such
 * record we append our MMAP2s of the code in this memory, with the same time. Each function of a jitdump also
 * gets an MMAP2 with its own time, because two functions can have the same address at different times.
 */

#include "jit/jit.h"
#include "jit/share.h"
#include "jit/process.h"
#include "jit/source.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "sideband/emit.h"
#include "sideband/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Bounds for one dump. */
#define PROCESSES_MAX 4096u
#define TEXT 0x1000u

struct process {
	UT_hash_handle hh;
	pid_t pid;
	struct jit_user *user; /* the costs of the process are charged to the share of this user */
	bool map_was_read;
	/* Exit of the process whose perf map was read. A map record with a later time is from another
	   process with this pid. */
	uint64_t map_until_ns;
	struct jit_source *sources;
};

struct fr_jit {
	int dirfd, objects_fd; /* objects_fd -1: not created yet */
	char *directory, *name;
	gid_t gid;
	struct fr_jit_open_files *open_files;
	struct process *processes;
	struct jit_shares shares;
	bool left_out; /* a process was left out: too many processes, or a share was used up */
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
		.gid = config->gid,
		.open_files = config->open_files};
	jit_shares_init(&j->shares);
	if (!j->directory || !j->name) {
		fr_jit_free(j);
		return -ENOMEM;
	}
	*ret = j;
	return 0;
}

static void free_process(struct process *p)
{
	while (p->sources) {
		struct jit_source *next = p->sources->next;

		jit_source_free(p->sources);
		p->sources = next;
	}
	free(p);
}

struct fr_jit *fr_jit_free(struct fr_jit *j)
{
	if (!j)
		return NULL;
	FR_HASH_CLEAR(j->processes, free_process);
	jit_shares_deinit(&j->shares);
	fr_closep(&j->objects_fd);
	free(j->directory);
	free(j->name);
	free(j);
	return NULL;
}

static uid_t find_user(struct fr_jit *j, pid_t pid, uint64_t time_ns)
{
	struct fr_jit_open_file file;

	if (!j->open_files || fr_jit_open_files_find(j->open_files, pid, time_ns, &file) < 0)
		return jit_user_of(pid);
	close(file.fd);
	return file.uid;
}

/* Returns NULL if there is no memory, or there are too many processes. */
static struct process *find_or_add_process(struct fr_jit *j, pid_t pid, uint64_t time_ns)
{
	struct process *p = FR_HASH_FIND(j->processes, pid, pid);
	struct jit_user *user;

	if (p || HASH_COUNT(j->processes) >= PROCESSES_MAX)
		return p;
	user = jit_share_find(&j->shares, find_user(j, pid, time_ns));
	p = user ? FR_HASH_NEW(j->processes, pid, pid) : NULL;
	if (p)
		p->user = user;
	return p;
}

static int open_objects(struct fr_jit *j)
{
	if (j->objects_fd >= 0)
		return 0;
	j->objects_fd = fr_directory_make(j->dirfd, j->name, j->gid);
	return FR_MIN(j->objects_fd, 0);
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

/* Frees memory that later calls do not need. Keeps only the first and the last function of a perf map. */
static void shrink(struct jit_source *s)
{
	struct jit_symbol *v;

	fr_buf_deinit(&s->code.file);
	fr_buf_deinit(&s->code.names);
	if (s->ino || s->code.n < 2)
		return;
	s->code.v[1] = s->code.v[s->code.n - 1];
	s->code.n = 2;
	v = reallocarray(s->code.v, s->code.n, sizeof(*v));
	s->code.v = v ? v : s->code.v;
}

/* Writes the object of S. The name of its file has the pid and a part of the build-id, so several dumps, and
   a file that flightrec-merge makes from them, can share the object. RET_BYTES gets the bytes that the object
   takes on the disk and in memory. Returns 0; -EFBIG if the object is larger than MAX bytes; or another
   negative errno. */
static int write_object(
	struct fr_jit *j, const struct process *p, struct jit_source *s, uint64_t max, uint64_t *ret_bytes)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char name[NAME_MAX];
	int n, r = jit_object_make(&s->code, &b, &s->base, s->id);

	if (r < 0)
		return r;
	if (b.len > max)
		return -EFBIG;
	n = snprintf(name, sizeof(name), "jitted-%d-", p->pid);
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
	j->stats.objects++;
	j->stats.functions += s->code.n;
	j->stats.bytes += b.len;
	shrink(s);
	*ret_bytes = b.len + s->code.n * sizeof(*s->code.v);
	return 0;
}

/* Writes the object of S and adds S to P. If the object cannot be written, S is added without an object. The
   bytes of the object are added to COST. Returns 0 or -ENOMEM. */
static int add_source(struct fr_jit *j, struct process *p, struct jit_source *s, struct jit_cost *cost)
{
	const uint64_t left = jit_share_left(&j->shares, p->user).bytes;
	uint64_t bytes = 0;
	int r = write_object(j, p, s, left - FR_MIN(left, cost->bytes), &bytes);

	cost->bytes += bytes;
	j->stats.truncated += s->code.truncated || r < 0;
	/* S stays in the list, without its functions, so that the next map record does not cause another
	   attempt. */
	if (r < 0)
		jit_code_deinit(&s->code);
	s->next = p->sources;
	p->sources = s;
	return r == -ENOMEM ? r : 0;
}

static int load_perf_map(
	struct fr_jit *j, struct process *p, const struct fr_record_mmap2 *m, struct jit_cost *cost)
{
	const uint64_t time_ns = fr_record_time(&m->header);
	struct jit_source *s = NULL;
	int r;

	if (p->map_was_read && time_ns <= p->map_until_ns)
		return 0;
	p->map_was_read = true;
	r = jit_source_perf_map(p->pid, time_ns, j->open_files, jit_share_left(&j->shares, p->user).bytes, &s,
		&cost->bytes, &p->map_until_ns);
	if (r != 0)
		return FR_MIN(r, 0);
	s->event_id = fr_record_id(&m->header);
	return add_source(j, p, s, cost);
}

static int load_jitdump(
	struct fr_jit *j, struct process *p, const struct fr_record_mmap2 *m, struct jit_cost *cost)
{
	struct jit_source *s = NULL;
	int r;

	for (const struct jit_source *have = p->sources; have; have = have->next)
		if (have->ino && have->ino == m->ino)
			return 0;
	r = jit_source_dump(m, jit_share_left(&j->shares, p->user).bytes, &s, &cost->bytes);
	if (r != 0)
		return FR_MIN(r, 0);
	s->event_id = fr_record_id(&m->header);
	s->from_ns = fr_record_time(&m->header);
	return add_source(j, p, s, cost);
}

static int emit_map(const struct jit_source *s, pid_t pid, const struct fr_map_range *range, uint64_t time_ns,
	struct fr_buf *ret)
{
	struct fr_emit e = {ret, time_ns, s->event_id};
	struct fr_backing b = {.has_build_id = true};

	b.build_id.size = JIT_BUILD_ID_SIZE;
	memcpy(b.build_id.bytes, s->id, JIT_BUILD_ID_SIZE);
	return fr_emit_mmap2(&e, pid, range, &b, s->path, strlen(s->path));
}

static int emit_function(
	const struct jit_source *s, size_t i, pid_t pid, uint64_t time_ns, struct fr_buf *ret)
{
	const struct jit_symbol *f = &s->code.v[i];
	const struct fr_map_range range = {f->addr, f->size, f->offset, PROT_READ | PROT_EXEC, MAP_PRIVATE};

	return emit_map(s, pid, &range, time_ns, ret);
}

/* Appends records for the functions of the jitdump S that are in the memory of M at the time of M, at most
   about MOST bytes. */
static int emit_functions_in(
	const struct jit_source *s, const struct fr_record_mmap2 *m, uint64_t most, struct fr_buf *ret)
{
	const uint64_t time_ns = fr_record_time(&m->header), end = m->addr + m->len;
	const size_t before = ret->len;
	int r = 0;

	for (size_t i = 0; i < s->code.n && s->code.v[i].time_ns <= time_ns && r == 0; i++) {
		const struct jit_symbol *f = &s->code.v[i];

		if (f->addr < end && f->addr + f->size > m->addr && ret->len - before < most)
			r = emit_function(s, i, (pid_t)m->pid, time_ns, ret);
	}
	return r;
}

/* Appends records for the part of M that S describes, at most about MOST bytes. */
static int emit_covered(
	const struct jit_source *s, const struct fr_record_mmap2 *m, uint64_t most, struct fr_buf *ret)
{
	const uint64_t time_ns = fr_record_time(&m->header);
	const struct jit_symbol *last = s->code.n ? &s->code.v[s->code.n - 1] : NULL;
	struct fr_map_range range = {.prot = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE};
	uint64_t end;

	if (!s->path || !last || time_ns < s->from_ns || time_ns > s->until_ns || m->addr + m->len <= m->addr)
		return 0;
	if (s->ino)
		return emit_functions_in(s, m, most, ret);
	end = FR_MIN(m->addr + m->len, last->addr + last->size);
	range.addr = FR_MAX(m->addr, s->base);
	if (range.addr >= end)
		return 0;
	range.len = end - range.addr;
	range.pgoff = range.addr - s->base + TEXT;
	return emit_map(s, (pid_t)m->pid, &range, time_ns, ret);
}

/* Returns whether NAME is like ".../jit-1234.dump", perhaps with the suffix of a removed file. */
static bool is_jitdump(const char *name)
{
	const char *base = strrchr(name, '/');

	return base &&
	       (fnmatch("/jit-*.dump", base, 0) == 0 || fnmatch("/jit-*.dump (deleted)", base, 0) == 0);
}

/* If DUMP is true, M maps a jitdump, and the function loads the jitdump. Otherwise, loads the perf map of P
   if it was not loaded yet, and appends the records of the code in M. Charges the cost to the share of the
   user. */
static int append_and_charge(
	struct fr_jit *j, struct process *p, const struct fr_record_mmap2 *m, bool dump, struct fr_buf *ret)
{
	const uint64_t begin = fr_monotonic_ns();
	const size_t before = ret->len;
	struct jit_cost cost = {0};
	uint64_t left;
	int r = dump ? load_jitdump(j, p, m, &cost) : load_perf_map(j, p, m, &cost);

	left = jit_share_left(&j->shares, p->user).records;
	for (const struct jit_source *s = p->sources; s && !dump && r == 0; s = s->next)
		if (ret->len - before < left)
			r = emit_covered(s, m, left - (ret->len - before), ret);
	cost.ns = fr_monotonic_ns() - begin;
	cost.records = ret->len - before;
	jit_share_charge(&j->shares, p->user, &cost);
	return r;
}

static int append_maps_of(struct fr_jit *j, const struct fr_record_mmap2 *m, struct fr_buf *ret)
{
	bool dump = is_jitdump(m->filename);
	struct process *p;

	if (!dump && !jit_is_anonymous(m->filename))
		return 0;
	p = find_or_add_process(j, (pid_t)m->pid, fr_record_time(&m->header));
	if (!p || jit_share_is_used_up(&j->shares, p->user)) {
		j->left_out = true;
		return 0;
	}
	return append_and_charge(j, p, m, dump, ret);
}

int fr_jit_append_maps(struct fr_jit *j, const void *records, size_t len, struct fr_buf *ret)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct fr_record_mmap2 *m;
	int r = 0;

	fr_thread_assert_may_wait();
	while (j && r == 0 && (m = (const void *)fr_record_next(&it)))
		if (jit_is_executable(m))
			r = append_maps_of(j, m, ret);
	return r;
}

/* Appends a record for each function of S with a time up to UNTIL_NS, within the share of the user. */
static int append_functions_of(struct fr_jit *j, const struct process *p, struct jit_source *s,
	uint64_t until_ns, struct fr_buf *ret)
{
	const size_t before = ret->len;
	const uint64_t left = jit_share_left(&j->shares, p->user).records;
	struct jit_cost cost = {0};
	int r = 0;

	for (; s->n_written < s->code.n && r == 0; s->n_written++) {
		const uint64_t time_ns = FR_MAX(s->code.v[s->n_written].time_ns, s->from_ns);

		if (time_ns > until_ns)
			break;
		if (ret->len - before < left)
			r = emit_function(s, s->n_written, p->pid, time_ns, ret);
		else
			j->left_out = true;
	}
	cost.records = ret->len - before;
	jit_share_charge(&j->shares, p->user, &cost);
	return r;
}

int fr_jit_append_functions(struct fr_jit *j, uint64_t until_ns, struct fr_buf *ret)
{
	int r = 0;

	for (const struct process *p = j ? j->processes : NULL; p; p = p->hh.next)
		for (struct jit_source *s = p->sources; s && r == 0; s = s->next)
			if (s->ino && s->path && s->n_written < s->code.n)
				r = append_functions_of(j, p, s, until_ns, ret);
	return r;
}

int fr_jit_finish(struct fr_jit *j, struct fr_jit_stats *ret)
{
	if (!j)
		return 0;
	if (j->objects_fd >= 0 && fsync(j->objects_fd) < 0)
		return -errno;
	if (ret) {
		*ret = j->stats;
		ret->truncated += j->left_out;
	}
	return 0;
}

void fr_jit_discard(struct fr_jit *j)
{
	if (!j)
		return;
	for (const struct process *p = j->processes; p && j->objects_fd >= 0; p = p->hh.next)
		for (const struct jit_source *s = p->sources; s; s = s->next)
			if (s->path)
				(void)unlinkat(j->objects_fd, strrchr(s->path, '/') + 1, 0);
	if (j->objects_fd >= 0)
		(void)unlinkat(j->dirfd, j->name, AT_REMOVEDIR);
}
