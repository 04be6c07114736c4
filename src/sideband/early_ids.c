// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/early_ids.h"
#include "sideband/hash.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define IDS_MAX 32768u
#define VERSIONS_MAX 4u /* build-ids of one file; a file that is changed in place has several build-ids */
/* Least time between two reads of one file. Without this pause, a shell script that starts the same programs
   many times would cause a read for each start. */
#define REREAD_NS (100 * FR_NSEC_PER_MSEC)

struct key {
	uint32_t maj, min;
	uint64_t ino, generation;
};

struct version {
	uint64_t since_ns; /* time of the first map with this build-id */
	int len;	   /* 0: the file has no build-id */
	uint8_t bytes[FR_BUILD_ID_MAX];
};

struct id {
	UT_hash_handle hh;
	struct key key;
	uint64_t read_ns; /* time of the map record for which the file was last read */
	unsigned n;
	bool dropped_older;		/* older versions than v[0] were removed */
	struct version v[VERSIONS_MAX]; /* oldest first */
};

struct fr_early_ids {
	struct fr_lock lock;
	struct id *ids; /* oldest first */
	struct fr_build_id_cache *files;
};

struct fr_early_ids *fr_early_ids_new(void)
{
	struct fr_early_ids *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	fr_lock_init(&e->lock);
	e->files = fr_build_id_cache_new();
	return e->files ? e : fr_early_ids_free(e);
}

struct fr_early_ids *fr_early_ids_free(struct fr_early_ids *e)
{
	if (!e)
		return NULL;
	FR_HASH_CLEAR(e->ids, free);
	fr_build_id_cache_free(e->files);
	fr_lock_deinit(&e->lock);
	free(e);
	return NULL;
}

static struct id *find(const struct fr_early_ids *e, const struct fr_record_mmap2 *m)
{
	const struct key key = {m->maj, m->min, m->ino, m->ino_generation};

	return FR_HASH_FIND(e->ids, key, key);
}

static struct id *add(struct fr_early_ids *e, const struct fr_record_mmap2 *m)
{
	const struct key key = {m->maj, m->min, m->ino, m->ino_generation};
	struct id *i;

	while (HASH_COUNT(e->ids) >= IDS_MAX) {
		i = e->ids;
		HASH_DEL(e->ids, i);
		free(i);
	}
	i = FR_HASH_NEW(e->ids, key, key);
	if (i)
		i->read_ns = fr_record_time(&m->header);
	return i;
}

/* Stores that the file of M has the build-id BYTES (LEN 0: no build-id) since the time of M. I is the entry
   of this file; NULL if the file has no entry yet. */
static void remember(
	struct fr_early_ids *e, struct id *i, const struct fr_record_mmap2 *m, const uint8_t *bytes, int len)
{
	const struct version *newest = i ? &i->v[i->n - 1] : NULL;
	struct version v = {.since_ns = fr_record_time(&m->header), .len = len};

	if (newest && newest->len == len && memcmp(newest->bytes, bytes, (size_t)len) == 0)
		return;
	if (!i)
		i = add(e, m);
	if (!i)
		return;
	memcpy(v.bytes, bytes, (size_t)len);
	if (i->n == VERSIONS_MAX) {
		memmove(i->v, i->v + 1, (VERSIONS_MAX - 1) * sizeof(*i->v));
		i->dropped_older = true;
		i->n--;
	}
	i->v[i->n++] = v;
}

/* Copies the build-id that the file of I had at the time of M. Returns the length of the build-id; 0 if the
   file had no build-id at that time, or the build-id of that time was removed. */
static int copy_version(const struct id *i, const struct fr_record_mmap2 *m, uint8_t *ret)
{
	const uint64_t time_ns = fr_record_time(&m->header);
	unsigned at = i->n - 1;

	while (at > 0 && i->v[at].since_ns > time_ns)
		at--;
	if (i->dropped_older && i->v[at].since_ns > time_ns)
		return 0;
	memcpy(ret, i->v[at].bytes, sizeof(i->v[at].bytes));
	return i->v[at].len;
}

static int read_id(struct fr_early_ids *e, const struct fr_record_mmap2 *m, uint8_t *ret)
{
	const struct fr_file_id file = {m->ino, m->ino_generation};
	char path[64 + PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", m->pid, (unsigned long long)m->addr,
		(unsigned long long)(m->addr + m->len));
	r = fr_build_id_at(e->files, AT_FDCWD, path, true, &file, ret);
	if (r >= 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%u/root%s", m->pid, m->filename);
	r = fr_build_id_at(e->files, AT_FDCWD, path, false, &file, ret);
	return r >= 0 ? r : fr_build_id_at(e->files, AT_FDCWD, m->filename, false, &file, ret);
}

int fr_early_ids_find(struct fr_early_ids *e, const struct fr_record_mmap2 *m, bool may_read,
	uint8_t ret[static FR_BUILD_ID_MAX])
{
	const struct id *i;
	int r = -ENOENT;

	if (may_read)
		fr_thread_assert_may_wait();
	fr_lock(&e->lock);
	i = find(e, m);
	if (i)
		r = copy_version(i, m, ret);
	else if (may_read)
		r = read_id(e, m, ret);
	if (!i && r >= 0)
		remember(e, NULL, m, ret, r);
	fr_unlock(&e->lock);
	return r;
}

/* Reads the build-id of the file of M, unless it was read less than REREAD_NS before. A build-id that was
   read earlier is read again, because the file may have been changed in place. (If the file has its old
   mtime, fr_build_id_at() takes the build-id from its cache.) */
static void read_again(struct fr_early_ids *e, const struct fr_record_mmap2 *m)
{
	const uint64_t time_ns = fr_record_time(&m->header);
	uint8_t id[FR_BUILD_ID_MAX];
	struct id *i;
	int r;

	fr_lock(&e->lock);
	i = find(e, m);
	if (!i || time_ns < i->read_ns || time_ns - i->read_ns >= REREAD_NS) {
		r = read_id(e, m, id);
		if (r >= 0)
			remember(e, i, m, id, r);
		if (i)
			i->read_ns = time_ns;
	}
	fr_unlock(&e->lock);
}

void fr_early_ids_update(struct fr_early_ids *e, const void *records, size_t len)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct fr_record_mmap2 *m;

	fr_thread_assert_may_wait();
	while ((m = (const void *)fr_record_next(&it)))
		if (m->header.type == PERF_RECORD_MMAP2 && m->prot & PROT_EXEC &&
			!(m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && m->filename[0] == '/' &&
			fr_record_has_text(&m->header, m->filename) && m->ino)
			read_again(e, m);
}
