// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/build_ids.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "history/unpack.h"
#include "objects/vdso.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "sideband/buildid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* uthash's way out of an allocation that fails. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define NOTES_MAX (1u << 20)
#define KERNEL_MAP "[kernel.kallsyms]"

struct entry {
	UT_hash_handle hh;
	char path[];
};

struct fr_build_ids {
	struct entry *paths;
	bool vdso;
	struct fr_build_id_cache *files; /* what was read of files whose records bring no build-id */
};

int fr_build_ids_new(bool vdso, struct fr_build_ids **ret)
{
	struct fr_build_ids *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->vdso = vdso;
	b->files = fr_build_id_cache_new();
	if (!b->files) {
		fr_build_ids_free(b);
		return -ENOMEM;
	}
	*ret = b;
	return 0;
}

struct fr_build_ids *fr_build_ids_free(struct fr_build_ids *b)
{
	struct entry *e;

	if (!b)
		return NULL;
	e = b->paths;
	HASH_CLEAR(hh, b->paths); /* the table; the entries stay a list */
	while (e) {
		struct entry *next = e->hh.next;

		free(e);
		e = next;
	}
	fr_build_id_cache_free(b->files);
	free(b);
	return NULL;
}

/* 1: new, 0: known, -ENOMEM. */
static int remember(/* NOLINT(readability-function-size): uthash's macros */
	struct fr_build_ids *b, const char *path)
{
	size_t len = strlen(path);
	struct entry *e;

	HASH_FIND(hh, b->paths, path, len, e);
	if (e)
		return 0;
	e = calloc(1, sizeof(*e) + len + 1);
	if (!e)
		return -ENOMEM;
	memcpy(e->path, path, len);
	HASH_ADD_KEYPTR(hh, b->paths, e->path, len, e);
	if (!e->hh.tbl) {
		free(e);
		return -ENOMEM;
	}
	return 1;
}

static int add(
	struct fr_session *s, uint16_t cpumode, int32_t pid, const uint8_t *id, size_t size, const char *path)
{
	int r = fr_feature_add_build_id(s, cpumode, pid, id, size, path);

	/* A path or an id that the section cannot hold: perf then looks at the file itself. */
	return r == -ENOMEM ? r : 0;
}

/* "/lib/…/snd-pcm.ko.xz", "[snd_pcm]" → "snd_pcm", as /sys/module has it. */
static bool module_name(const char *path, char *ret, size_t size)
{
	const char *base = strrchr(path, '/');
	size_t n;

	base = base ? base + 1 : path;
	if (base[0] == '[')
		base++;
	n = strcspn(base, ".]");
	if (n == 0 || n >= size)
		return false;
	for (size_t i = 0; i < n; i++)
		ret[i] = base[i] == '-' ? '_' : base[i];
	ret[n] = '\0';
	return true;
}

/* The map of the kernel or of a module. */
static int collect_kernel(struct fr_build_ids *b, struct fr_session *s, const char *map)
{
	_cleanup_buf_ struct fr_buf notes = {0};
	bool kernel = strncmp(map, KERNEL_MAP, strlen(KERNEL_MAP)) == 0;
	char name[NAME_MAX], path[PATH_MAX] = "/sys/kernel/notes";
	uint8_t id[20];
	int r;

	if (!kernel) {
		if (!module_name(map, name, sizeof(name)))
			return 0;
		snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", name);
	}
	r = remember(b, kernel ? KERNEL_MAP : map);
	if (r <= 0)
		return r;
	r = fr_read_file(AT_FDCWD, path, NOTES_MAX, &notes);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = fr_build_id_from_notes(notes.data, notes.len, 4, id);
	return r < 0 ? 0 : add(s, PERF_RECORD_MISC_KERNEL, -1, id, (size_t)r, kernel ? KERNEL_MAP : map);
}

/* The file behind a map whose record does not bring its build-id: by the map itself while the process has it,
   else by its name in the process's view of the file system, else in ours. An inode that is not the record's
   is another file. */
static int read_build_id(struct fr_build_ids *b, const struct fr_record_mmap2 *m, uint8_t *ret)
{
	char path[64 + PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", m->pid, (unsigned long long)m->addr,
		(unsigned long long)(m->addr + m->len));
	r = fr_build_id_at(b->files, AT_FDCWD, path, 1, m->ino, ret);
	if (r >= 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%u/root%s", m->pid, m->filename);
	r = fr_build_id_at(b->files, AT_FDCWD, path, 0, m->ino, ret);
	return r >= 0 ? r : fr_build_id_at(b->files, AT_FDCWD, m->filename, 0, m->ino, ret);
}

static int collect_file(struct fr_build_ids *b, struct fr_session *s, const struct fr_record_mmap2 *m)
{
	bool inlined = m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID,
	     vdso = strcmp(m->filename, FR_VDSO_NAME) == 0;
	uint8_t id[FR_BUILD_ID_MAX];
	const void *data;
	size_t data_size;
	int size = 0, r;

	if (vdso && !b->vdso)
		return 0;
	if (!vdso && (m->filename[0] != '/' || (!inlined && m->ino == 0)))
		return 0;
	if (inlined && (m->build_id_size == 0 || m->build_id_size > sizeof(m->build_id)))
		return 0;
	r = remember(b, m->filename);
	if (r <= 0)
		return r;
	if (inlined)
		memcpy(id, m->build_id, (size_t)(size = m->build_id_size));
	else
		size = vdso ? fr_vdso(&data, &data_size, id) : read_build_id(b, m, id);
	return size <= 0 ? 0 : add(s, PERF_RECORD_MISC_USER, -1, id, (size_t)size, m->filename);
}

/* Whether the NAME at the end of a record has its NUL inside. */
static bool ends(const struct perf_event_header *h, const char *name)
{
	const char *end = (const char *)h + h->size - sizeof(struct fr_sample_id);

	return name < end && memchr(name, '\0', (size_t)(end - name));
}

int fr_build_ids_collect(struct fr_build_ids *b, struct fr_session *s, const void *records, size_t len)
{
	struct fr_section_iter it = fr_section_iter(records, len);
	const struct perf_event_header *h;
	int r = 0;

	while (r == 0 && (h = fr_section_next(&it))) {
		uint16_t mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
		const struct fr_record_mmap *map = (const void *)h;
		const struct fr_record_mmap2 *map2 = (const void *)h;

		if (h->type == PERF_RECORD_MMAP && mode == PERF_RECORD_MISC_KERNEL && ends(h, map->filename))
			r = collect_kernel(b, s, map->filename);
		else if (h->type == PERF_RECORD_MMAP2 && mode == PERF_RECORD_MISC_USER &&
			 ends(h, map2->filename))
			r = collect_file(b, s, map2);
	}
	return r;
}
