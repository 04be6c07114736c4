// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/early_ids.h"
#include "base/cleanup.h"

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

struct key {
	uint32_t maj, min;
	uint64_t ino, generation;
};

struct id {
	UT_hash_handle hh;
	struct key key;
	int len; /* 0: the file has none */
	uint8_t bytes[FR_BUILD_ID_MAX];
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

static void remember(struct fr_early_ids *e, const struct key *key, const uint8_t *bytes, int len)
{
	struct id *i, *oldest = e->ids;

	if (HASH_COUNT(e->ids) >= IDS_MAX) {
		HASH_DEL(e->ids, oldest);
		free(oldest);
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		return;
	i->key = *key;
	i->len = len;
	memcpy(i->bytes, bytes, (size_t)len);
	HASH_ADD(hh, e->ids, key, sizeof(i->key), i);
	if (!i->hh.tbl)
		free(i);
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
	const struct key key = {m->maj, m->min, m->ino, m->ino_generation};
	struct id *i;
	int r;

	pthread_mutex_lock(&e->lock);
	HASH_FIND(hh, e->ids, &key, sizeof(key), i);
	if (i) {
		memcpy(ret, i->bytes, sizeof(i->bytes));
		r = i->len;
	} else {
		r = read_id(e, m, ret);
		if (r >= 0)
			remember(e, &key, ret, r);
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

/* Whether the NAME of M has its NUL inside, and is a path. */
static bool has_path(const struct fr_record_mmap2 *m)
{
	const char *end = (const char *)m + m->header.size - sizeof(struct fr_sample_id);

	return m->filename < end && m->filename[0] == '/' &&
	       memchr(m->filename, '\0', (size_t)(end - m->filename));
}

void fr_early_ids_see(struct fr_early_ids *e, const void *records, size_t len)
{
	uint8_t id[FR_BUILD_ID_MAX];

	for (size_t at = 0; fr_record_is_whole((const char *)records + at, len - at);) {
		const struct fr_record_mmap2 *m = (const void *)((const char *)records + at);

		at += m->header.size;
		if (m->header.type == PERF_RECORD_MMAP2 && m->prot & PROT_EXEC &&
			!(m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && has_path(m) && m->ino)
			(void)fr_early_ids_find(e, m, id);
	}
}
