// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/build_ids.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/foreign.h"
#include "objects/vdso.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "sideband/emit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

/* With this macro, uthash reports a failed allocation, and does not end the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define NOTES_MAX (1u << 20)
#define KERNEL_MAP "[kernel.kallsyms]"
#define DELETED " (deleted)"

struct entry {
	UT_hash_handle hh;
	uint8_t file[24]; /* device and inode of the file that keeps the path: see keeps_path() */
	bool has_file;
	uint8_t id[FR_BUILD_ID_MAX];
	int id_len; /* 0 or less: the build-id is not known */
	char path[];
};

struct fr_build_ids {
	struct entry *paths;
	bool vdso;
	bool other_boot;
	const struct fr_buf *kernel; /* kernel_build_ids of the parameters */
	/* The build-ids of mapped files. `own` is NULL, or is `early` if fr_build_ids_new() made it. */
	struct fr_early_ids *early, *own;
};

int fr_build_ids_new(const struct fr_dump_params *params, struct fr_build_ids **ret)
{
	struct fr_build_ids *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->vdso = params->vdso_kept && !params->other_boot;
	b->other_boot = params->other_boot;
	b->kernel = params->kernel_build_ids;
	b->own = params->early_ids ? NULL : fr_early_ids_new();
	b->early = params->early_ids ? params->early_ids : b->own;
	if (!b->early) {
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
	HASH_CLEAR(hh, b->paths); /* this frees the table; the entries stay a list */
	while (e) {
		struct entry *next = e->hh.next;

		free(e);
		e = next;
	}
	fr_early_ids_free(b->own);
	free(b);
	return NULL;
}

/* Finds the entry of PATH, or adds one. RET may be NULL. Returns 1 if the entry is new; 0 if it existed; or
   -ENOMEM. */
static int find_or_add(/* NOLINT(readability-function-size): uthash's macros */
	struct fr_build_ids *b, const char *path, struct entry **ret)
{
	size_t len = strlen(path);
	struct entry *e;

	HASH_FIND(hh, b->paths, path, len, e);
	if (ret)
		*ret = e;
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
	if (ret)
		*ret = e;
	return 1;
}

static int add_build_id(
	struct fr_session *s, uint16_t cpumode, int32_t pid, const uint8_t *id, size_t size, const char *path)
{
	int r = fr_feature_add_build_id(s, cpumode, pid, id, size, path);

	/* If the path or the id is too long for the section, leave the build-id out. perf then reads it from
	   the file. */
	return r == -ENOMEM ? r : 0;
}

/* Converts "/lib/…/snd-pcm.ko.xz" or "[snd_pcm]" to "snd_pcm", the name in /sys/module. */
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

/* Reads the build-id of the running kernel, or of its module MODULE. Returns the size of the build-id, or a
   negative errno. */
static int read_kernel(const char *module, uint8_t ret[static 20])
{
	_cleanup_buf_ struct fr_buf notes = {0};
	char path[PATH_MAX] = "/sys/kernel/notes";
	int r;

	if (module)
		snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", module);
	r = fr_read_file(AT_FDCWD, path, NOTES_MAX, &notes);
	return r < 0 ? r : fr_build_id_from_notes(notes.data, notes.len, 4, ret);
}

/* Does the same as read_kernel(), for the kernel of another boot. */
static int find_kernel(const struct fr_buf *records, const char *module, uint8_t ret[static 20])
{
	struct fr_record_iter it = fr_record_iter(records->data, records->len);
	const struct fr_record_build_id *record;
	char name[NAME_MAX + 3] = KERNEL_MAP;

	if (module)
		snprintf(name, sizeof(name), "[%s]", module);
	while ((record = fr_record_next_build_id(&it)))
		if (strcmp(record->filename, name) == 0) {
			memcpy(ret, record->id, sizeof(record->id));
			return record->size;
		}
	return -ENOENT;
}

/* Adds the build-id of the kernel or of a module. MAP is the name in the map record. */
static int collect_kernel(struct fr_build_ids *b, struct fr_session *s, const char *map)
{
	const bool kernel = strncmp(map, KERNEL_MAP, strlen(KERNEL_MAP)) == 0;
	const char *key = kernel ? KERNEL_MAP : map;
	char name[NAME_MAX], *module = kernel ? NULL : name;
	uint8_t id[20];
	int r;

	if (!kernel && !module_name(map, name, sizeof(name)))
		return 0;
	r = find_or_add(b, key, NULL);
	if (r <= 0)
		return r;
	if (!b->other_boot)
		r = read_kernel(module, id);
	else
		r = b->kernel ? find_kernel(b->kernel, module, id) : -ENOENT;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	return add_build_id(s, PERF_RECORD_MISC_KERNEL, -1, id, (size_t)r, key);
}

/* Checks whether the path of M names the file that M maps, so that a reader on this machine finds this file.
   ID, of SIZE bytes, is the build-id that the file must have. If SIZE is 0 or less, the file may have any
   build-id. Returns 1 if the path names this file; 0 if it names another file; or a negative errno. */
static int check_path(const struct fr_record_mmap2 *m, const uint8_t *id, int size)
{
	const struct fr_file_id file = {m->ino, m->ino_generation};
	uint8_t now[FR_BUILD_ID_MAX];
	struct stat st;
	_cleanup_close_ int fd = fr_foreign_open_linked(0, m->filename, &st);

	if (fd < 0)
		return fd;
	if (!fr_file_has_id(fd, st.st_ino, &file))
		return 0;
	return size <= 0 || (fr_build_id_read(fd, now) == size && memcmp(id, now, (size_t)size) == 0);
}

/* Appends a copy of M with the name "PATH (deleted)", which no file has. The kernel uses such names for maps
   of deleted files. ID is the build-id of the file, or NULL. */
static int append_renamed(const struct fr_record_mmap2 *m, const uint8_t *id, size_t size, struct fr_buf *ret)
{
	struct fr_emit e = {ret, fr_record_time(&m->header), fr_record_id(&m->header)};
	const struct fr_map_range range = {m->addr, m->len, m->pgoff, m->prot, m->flags};
	struct fr_backing backing = {.has_build_id = id != NULL};
	char name[FR_EMIT_NAME_MAX + 1];
	int n = snprintf(
		name, sizeof(name), "%.*s" DELETED, (int)(FR_EMIT_NAME_MAX - strlen(DELETED)), m->filename);

	memcpy(backing.raw, &m->maj, sizeof(backing.raw));
	if (id) {
		backing.build_id.size = (uint8_t)size;
		memcpy(backing.build_id.bytes, id, size);
	}
	return fr_emit_mmap2(&e, (pid_t)m->pid, &range, &backing, name, (size_t)n);
}

static bool is_deleted(const char *name)
{
	const size_t n = strlen(name), suffix = strlen(DELETED);

	return n > suffix && strcmp(name + n - suffix, DELETED) == 0;
}

/* Several files may have had the path of M, one after the other. In the dump, only one of these files may
   keep the path: the file that has the path now; or, if the path names no file now, the first file with a
   known build-id. (A reader that knows the build-id does not take another file that gets the path later.)
   Returns whether the file that M maps keeps the path. */
static bool keeps_path(const struct entry *e, const struct fr_record_mmap2 *m, const uint8_t *id, int size)
{
	const int here = check_path(m, id, size);

	/* The path names the file of M, or it is not known which file the path names, for example without
	   permission. In both cases the file of M keeps the path. */
	if (here != 0 && here != -ENOENT && here != -ENOEXEC)
		return true;
	return here < 0 && size > 0 && !e->has_file;
}

/* Call this if M maps the file that keeps the path. Returns whether M maps another version of the file. There
   are two versions if somebody wrote to the file between two maps of it. The check does not read the file,
   because there can be many maps. */
static bool is_other_version(struct fr_build_ids *b, const struct entry *e, const struct fr_record_mmap2 *m,
	uint8_t *id, int *size)
{
	*size = fr_early_ids_find(b->early, m, false, id);
	return *size > 0 && e->id_len > 0 &&
	       (*size != e->id_len || memcmp(id, e->id, (size_t)e->id_len) != 0);
}

/* Remembers that the file of M keeps the path. If this is the first file of the path, adds its build-id to
   S. */
static int keep_path(
	struct fr_session *s, struct entry *e, const struct fr_record_mmap2 *m, const uint8_t *id, int size)
{
	const bool first = !e->has_file;

	memcpy(e->file, &m->maj, sizeof(e->file));
	e->has_file = true;
	e->id_len = size;
	if (size <= 0)
		return 0;
	memcpy(e->id, id, (size_t)size);
	return first ? add_build_id(s, PERF_RECORD_MISC_USER, -1, id, (size_t)size, m->filename) : 0;
}

/* Collects the build-id of the file that M maps; the record M has no build-id. A reader has one object for
   each path, with one build-id: from the feature section, or from the file that has the path when the reader
   runs. So two files in a dump must not have the same path. */
static int collect_by_file(struct fr_build_ids *b, struct fr_session *s, const struct fr_record_mmap2 *m,
	struct fr_buf *ret_follow)
{
	uint8_t id[FR_BUILD_ID_MAX];
	struct entry *e;
	int size, r = find_or_add(b, m->filename, &e);

	if (r < 0)
		return r;
	if (e->has_file && memcmp(e->file, &m->maj, sizeof(e->file)) == 0) {
		if (!is_other_version(b, e, m, id, &size))
			return 0;
	} else {
		size = fr_early_ids_find(b->early, m, true, id);
		if (keeps_path(e, m, id, size))
			return keep_path(s, e, m, id, size);
	}
	if (!ret_follow || !(m->prot & PROT_EXEC) || is_deleted(m->filename))
		return 0;
	return append_renamed(m, size > 0 ? id : NULL, (size_t)FR_MAX(size, 0), ret_follow);
}

static int collect_file(struct fr_build_ids *b, struct fr_session *s, const struct fr_record_mmap2 *m,
	struct fr_buf *ret_follow)
{
	bool inlined = m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID,
	     vdso = strcmp(m->filename, FR_VDSO_NAME) == 0;
	uint8_t id[FR_BUILD_ID_MAX];
	const void *data;
	size_t data_size;
	int size, r;

	if (vdso && !b->vdso)
		return 0;
	if (!vdso && (m->filename[0] != '/' || (!inlined && m->ino == 0)))
		return 0;
	if (inlined && (m->build_id_size == 0 || m->build_id_size > sizeof(m->build_id)))
		return 0;
	if (!inlined && !vdso)
		return collect_by_file(b, s, m, ret_follow);
	r = find_or_add(b, m->filename, NULL);
	if (r <= 0)
		return r;
	if (inlined)
		memcpy(id, m->build_id, (size_t)(size = m->build_id_size));
	else
		size = fr_vdso_find(&data, &data_size, id);
	return size <= 0 ? 0 : add_build_id(s, PERF_RECORD_MISC_USER, -1, id, (size_t)size, m->filename);
}

int fr_build_ids_collect(struct fr_build_ids *b, struct fr_session *s, const void *records, size_t len,
	struct fr_buf *ret_follow)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct perf_event_header *h;
	int r = 0;

	while (r == 0 && (h = fr_record_next(&it))) {
		uint16_t mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;
		const struct fr_record_mmap *map = (const void *)h;
		const struct fr_record_mmap2 *map2 = (const void *)h;

		if (h->type == PERF_RECORD_MMAP && mode == PERF_RECORD_MISC_KERNEL &&
			fr_record_has_text(h, map->filename))
			r = collect_kernel(b, s, map->filename);
		else if (h->type == PERF_RECORD_MMAP2 && mode == PERF_RECORD_MISC_USER &&
			 fr_record_has_text(h, map2->filename))
			r = collect_file(b, s, map2, ret_follow);
	}
	return r;
}
