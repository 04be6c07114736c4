// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/early_ids.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* uthash's way out of an allocation that fails. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define IDS_MAX 32768u
#define VERSIONS_MAX 4u /* of a file that is written in place */
/* Between two looks at one file: what a shell script runs is mapped over and over. */
#define LOOK_NS (100 * FR_NSEC_PER_MSEC)

struct key {
	uint32_t maj, min;
	uint64_t ino, generation;
};

struct version {
	uint64_t since_ns; /* of the first map that had it */
	int len;	   /* 0: the file has none */
	uint8_t bytes[FR_BUILD_ID_MAX];
};

struct id {
	UT_hash_handle hh;
	struct key key;
	uint64_t looked_ns; /* the time of the map that it was looked at for */
	unsigned n;
	bool had_more;			/* versions that were older */
	struct version v[VERSIONS_MAX]; /* oldest first */
};

struct fr_early_ids {
	pthread_mutex_t lock;
	struct id *ids; /* oldest first */
	struct fr_build_id_cache *files;
};

struct fr_early_ids *fr_early_ids_new(void)
{
	struct fr_early_ids *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	pthread_mutex_init(&e->lock, NULL);
	e->files = fr_build_id_cache_new();
	return e->files ? e : fr_early_ids_free(e);
}

struct fr_early_ids *fr_early_ids_free(struct fr_early_ids *e)
{
	struct id *i, *next;

	if (!e)
		return NULL;
	HASH_ITER (hh, e->ids, i, next) {
		HASH_DEL(e->ids, i);
		free(i);
	}
	fr_build_id_cache_free(e->files);
	pthread_mutex_destroy(&e->lock);
	free(e);
	return NULL;
}

static struct key key_of(const struct fr_record_mmap2 *m)
{
	return (struct key){m->maj, m->min, m->ino, m->ino_generation};
}

static struct id *find(const struct fr_early_ids *e, const struct fr_record_mmap2 *m)
{
	const struct key key = key_of(m);
	struct id *i;

	HASH_FIND(hh, e->ids, &key, sizeof(key), i);
	return i;
}

/* NULL: no memory. */
static struct id *add(struct fr_early_ids *e, const struct fr_record_mmap2 *m)
{
	struct id *i, *oldest = e->ids;

	if (HASH_COUNT(e->ids) >= IDS_MAX) {
		HASH_DEL(e->ids, oldest);
		free(oldest);
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	i->key = key_of(m);
	i->looked_ns = fr_record_time(&m->header);
	HASH_ADD(hh, e->ids, key, sizeof(i->key), i);
	if (!i->hh.tbl) {
		free(i);
		return NULL;
	}
	return i;
}

/* From M on the file of I (NULL: it is a new one) has this build-id. */
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
		i->had_more = true;
		i->n--;
	}
	i->v[i->n++] = v;
}

/* That of the time of M. */
static int take(const struct id *i, const struct fr_record_mmap2 *m, uint8_t *ret)
{
	const uint64_t time_ns = fr_record_time(&m->header);
	unsigned at = i->n - 1;

	while (at > 0 && i->v[at].since_ns > time_ns)
		at--;
	if (i->had_more && i->v[at].since_ns > time_ns)
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
	r = fr_build_id_at(e->files, AT_FDCWD, path, 1, &file, ret);
	if (r >= 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%u/root%s", m->pid, m->filename);
	r = fr_build_id_at(e->files, AT_FDCWD, path, 0, &file, ret);
	return r >= 0 ? r : fr_build_id_at(e->files, AT_FDCWD, m->filename, 0, &file, ret);
}

int fr_early_ids_find(
	struct fr_early_ids *e, const struct fr_record_mmap2 *m, uint8_t ret[static FR_BUILD_ID_MAX])
{
	const struct id *i;
	int r;

	pthread_mutex_lock(&e->lock);
	i = find(e, m);
	r = i ? take(i, m, ret) : read_id(e, m, ret);
	if (!i && r >= 0)
		remember(e, NULL, m, ret, r);
	pthread_mutex_unlock(&e->lock);
	return r;
}

int fr_early_ids_find_known(
	struct fr_early_ids *e, const struct fr_record_mmap2 *m, uint8_t ret[static FR_BUILD_ID_MAX])
{
	const struct id *i;
	int r;

	pthread_mutex_lock(&e->lock);
	i = find(e, m);
	r = i ? take(i, m, ret) : -ENOENT;
	pthread_mutex_unlock(&e->lock);
	return r;
}

/* Read again, as the file may have been written in place: what has not changed is known by its time of
 * change.
 */
static void see(struct fr_early_ids *e, const struct fr_record_mmap2 *m)
{
	const uint64_t time_ns = fr_record_time(&m->header);
	uint8_t id[FR_BUILD_ID_MAX];
	struct id *i;
	int r;

	pthread_mutex_lock(&e->lock);
	i = find(e, m);
	if (!i || time_ns < i->looked_ns || time_ns - i->looked_ns >= LOOK_NS) {
		r = read_id(e, m, id);
		if (r >= 0)
			remember(e, i, m, id, r);
		if (i)
			i->looked_ns = time_ns;
	}
	pthread_mutex_unlock(&e->lock);
}

/* Whether the NAME of M has its NUL inside, and is a path. */
static bool has_path(const struct fr_record_mmap2 *m)
{
	const char *end = (const char *)m + m->header.size - sizeof(struct fr_sample_id);

	return m->filename < end && m->filename[0] == '/' &&
	       memchr(m->filename, '\0', (size_t)(end - m->filename));
}

void fr_early_ids_update(struct fr_early_ids *e, const void *records, size_t len)
{
	for (size_t at = 0; fr_record_is_whole((const char *)records + at, len - at);) {
		const struct fr_record_mmap2 *m = (const void *)((const char *)records + at);

		at += m->header.size;
		if (m->header.type == PERF_RECORD_MMAP2 && m->prot & PROT_EXEC &&
			!(m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && has_path(m) && m->ino)
			see(e, m);
	}
}
