// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/vacuum.h"
#include "dump/names.h"
#include "dump/where.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define TEMPORARY "." FR_DUMP_PREFIX
#define DEPTH_MAX 4

#define MERGED_JIT FR_MERGED_NAME ".jit" /* of all merged files together */

struct entry {
	char name[sizeof(FR_DUMP_PREFIX) + FR_STAMP_SIZE];
	enum fr_name kind;
	uint64_t time_ns;
};

/* Dumps with the merged files that were moved aside, and auxiliary files that were put away, each oldest
 * first. */
struct listing {
	struct entry *dumps, *auxiliaries;
	size_t n_dumps, n_auxiliaries;
};

static void listing_deinit(struct listing *l)
{
	free(l->dumps);
	free(l->auxiliaries);
}

void fr_vacuum_report_deinit(struct fr_vacuum_report *r)
{
	for (size_t i = 0; i < r->n_removed; i++)
		free(r->removed[i]);
	free(r->removed);
	*r = (struct fr_vacuum_report){0};
}

static int add(struct entry **entries, size_t *n, const char *name, enum fr_name kind, uint64_t time_ns)
{
	size_t len = strnlen(name, sizeof((*entries)->name) - 1);
	struct entry *grown;

	if ((*n & (*n - 1)) == 0) { /* grows at powers of two */
		grown = reallocarray(*entries, *n ? *n * 2 : 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		*entries = grown;
	}
	(*entries)[*n].kind = kind;
	(*entries)[*n].time_ns = time_ns;
	memcpy((*entries)[*n].name, name, len);
	(*entries)[*n].name[len] = '\0';
	(*n)++;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* A merged file that was moved aside. Without its JSON it may be one that perf record made. */
static bool has_json(int dirfd, const char *name)
{
	char json[NAME_MAX + 8];
	struct stat st;

	snprintf(json, sizeof(json), "%s.json", name);
	return fstatat(dirfd, json, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int list(int dirfd, struct listing *ret)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	const struct dirent *e;
	uint64_t time_ns;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (e = readdir(dir))) {
		const enum fr_name kind = fr_name_kind(e->d_name, &time_ns);

		if (kind == FR_NAME_DUMP || (kind == FR_NAME_MERGED_OLDER && has_json(dirfd, e->d_name)))
			r = add(&ret->dumps, &ret->n_dumps, e->d_name, kind, time_ns);
		else if (kind == FR_NAME_AUXILIARY)
			r = add(&ret->auxiliaries, &ret->n_auxiliaries, e->d_name, kind, time_ns);
	}
	if (r == 0 && ret->n_dumps)
		qsort(ret->dumps, ret->n_dumps, sizeof(*ret->dumps), by_time);
	if (r == 0 && ret->n_auxiliaries)
		qsort(ret->auxiliaries, ret->n_auxiliaries, sizeof(*ret->auxiliaries), by_time);
	return r;
}

/* Bytes on the disk of NAME and of all that is in it; with REMOVE it goes. No link is followed. */
static uint64_t tree(int parent, const char *name, bool remove, unsigned depth, int *error)
{
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *e;
	uint64_t bytes;
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	bytes = (uint64_t)st.st_blocks * 512;
	if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
		dir = fr_opendir_at(parent, name);
		while (dir && (e = readdir(dir)))
			if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
				bytes += tree(dirfd(dir), e->d_name, remove, depth + 1, error);
	}
	if (remove && unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
		*error = -errno;
	return bytes;
}

/* A dump with all that belongs to it. The data goes first: what a crash in between leaves is found by its
   name the next time, and nobody takes it for a dump. */
static uint64_t dump_bytes(int dirfd, const char *name, bool remove, int *error)
{
	static const char *const suffixes[] = {"", ".json", ".jit"};
	size_t n = FR_ARRAY_SIZE(suffixes) - (fr_name_kind(name, NULL) == FR_NAME_MERGED_OLDER);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		char full[NAME_MAX + 1];

		snprintf(full, sizeof(full), "%s%s", name, suffixes[i]);
		bytes += tree(dirfd, full, remove, 0, error);
	}
	return bytes;
}

static int note_removed(struct fr_vacuum_report *ret, const char *name)
{
	char **grown = reallocarray(ret->removed, ret->n_removed + 2, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	ret->removed = grown;
	grown[ret->n_removed] = strdup(name);
	if (!grown[ret->n_removed])
		return -ENOMEM;
	grown[++ret->n_removed] = NULL;
	return 0;
}

/* MERGED_JIT goes with the last that needs it. */
static uint64_t remove_merged_jit(int dirfd)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	const struct dirent *e;
	enum fr_name kind;
	int error = 0;

	while (dir && (e = readdir(dir))) {
		kind = fr_name_kind(e->d_name, NULL);
		if (kind == FR_NAME_MERGED || kind == FR_NAME_MERGED_OLDER)
			return 0;
	}
	return dir ? tree(dirfd, MERGED_JIT, true, 0, &error) : 0;
}

static int remove_chosen(int dirfd, const struct listing *l, const struct fr_retention_file *files,
	struct fr_vacuum_report *ret)
{
	bool merged = false;
	int r = 0;

	for (size_t i = 0; i < l->n_dumps; i++) {
		int error = 0;
		uint64_t bytes;

		if (!files[i].remove) {
			ret->files++;
			ret->bytes += files[i].bytes;
			continue;
		}
		bytes = dump_bytes(dirfd, l->dumps[i].name, true, &error);
		if (error == 0) {
			ret->freed_bytes += bytes;
			merged |= l->dumps[i].kind == FR_NAME_MERGED_OLDER;
			error = note_removed(ret, l->dumps[i].name);
		}
		r = r ? r : error;
	}
	if (merged)
		ret->freed_bytes += remove_merged_jit(dirfd);
	return r;
}

/* The auxiliary file of a run that ended at its time: is any dump of that run left? */
static bool is_wanted(const struct listing *l, const struct fr_retention_file *files, size_t auxiliary)
{
	uint64_t from = auxiliary ? l->auxiliaries[auxiliary - 1].time_ns : 0;
	uint64_t to = l->auxiliaries[auxiliary].time_ns;

	for (size_t i = 0; i < l->n_dumps; i++)
		if (!files[i].remove && l->dumps[i].kind == FR_NAME_DUMP && l->dumps[i].time_ns >= from &&
			l->dumps[i].time_ns <= to)
			return true;
	return false;
}

static void remove_auxiliaries(int dirfd, const struct listing *l, const struct fr_retention_file *files,
	struct fr_vacuum_report *ret)
{
	int error = 0;

	for (size_t i = 0; i < l->n_auxiliaries; i++)
		if (!is_wanted(l, files, i))
			ret->freed_bytes += tree(dirfd, l->auxiliaries[i].name, true, 0, &error);
}

/* What a removal that was cut short left: a JSON or a directory without its dump. */
static void remove_orphans(int dirfd)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	const struct dirent *e;
	int error = 0;

	while (dir && (e = readdir(dir))) {
		char name[NAME_MAX + 1];
		enum fr_name kind;
		char *dot;
		struct stat st;

		snprintf(name, sizeof(name), "%s", e->d_name);
		dot = strrchr(name, '.');
		if (!dot || (strcmp(dot, ".json") && strcmp(dot, ".jit")))
			continue;
		*dot = '\0';
		kind = fr_name_kind(name, NULL);
		if ((kind == FR_NAME_DUMP || kind == FR_NAME_MERGED_OLDER) &&
			fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
			(void)tree(dirfd, e->d_name, true, 0, &error);
	}
}

static int measure(int dirfd, const struct listing *l, uint64_t keep_from_ns, struct fr_retention_file *files,
	struct fr_retention_disk *disk)
{
	struct statvfs v;
	int error = 0;

	if (fstatvfs(dirfd, &v) < 0)
		return -errno;
	disk->size = (uint64_t)v.f_blocks * v.f_frsize;
	disk->free = (uint64_t)v.f_bavail * v.f_frsize;
	disk->now_ns = fr_now_ns(CLOCK_REALTIME);
	for (size_t i = 0; i < l->n_auxiliaries; i++)
		disk->other += tree(dirfd, l->auxiliaries[i].name, false, 0, &error);
	disk->other += tree(dirfd, MERGED_JIT, false, 0, &error);
	for (size_t i = 0; i < l->n_dumps; i++) {
		files[i].time_ns = l->dumps[i].time_ns;
		files[i].bytes = dump_bytes(dirfd, l->dumps[i].name, false, &error);
		files[i].keep = l->dumps[i].time_ns >= keep_from_ns;
	}
	return 0;
}

/* Limits that cannot be kept are no reason to give dumps up for one that is to come, unless it needs just
   their room; and where even that is too little, none goes. */
static bool choose(const struct fr_retention *limits, const struct fr_retention_disk *disk,
	struct fr_retention_file *files, size_t n)
{
	const struct fr_retention room = {.max_files = limits->max_files, .max_age_ns = limits->max_age_ns};

	if (fr_retention_choose(limits, disk, files, n))
		return true;
	if (disk->need && !fr_retention_choose(&room, disk, files, n))
		for (size_t i = 0; i < n; i++)
			files[i].remove = false;
	return false;
}

static int run(int dirfd, const struct fr_retention *limits, uint64_t need_bytes, uint64_t keep_from_ns,
	struct fr_vacuum_report *ret)
{
	_cleanup_(listing_deinit) struct listing l = {0};
	_cleanup_free_ struct fr_retention_file *files = NULL;
	struct fr_retention_disk disk = {.need = need_bytes};
	struct fr_retention resolved;
	int r = list(dirfd, &l);

	if (r < 0)
		return r;
	files = calloc(l.n_dumps + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	r = measure(dirfd, &l, keep_from_ns, files, &disk);
	if (r < 0)
		return r;
	resolved = fr_retention_resolve(limits, disk.size);
	ret->fits = choose(&resolved, &disk, files, l.n_dumps);
	r = remove_chosen(dirfd, &l, files, ret);
	remove_auxiliaries(dirfd, &l, files, ret);
	return r;
}

int fr_vacuum(int dirfd, const struct fr_retention *limits, uint64_t need_bytes, uint64_t keep_from_ns,
	struct fr_vacuum_report *ret, struct fr_diag *d)
{
	_cleanup_(fr_vacuum_report_deinit) struct fr_vacuum_report own = {0};
	struct fr_vacuum_report *report = ret ? ret : &own;
	char dir[PATH_MAX];
	int r;

	report->files = report->bytes = 0;
	r = run(dirfd, limits, need_bytes, keep_from_ns, report);
	if (r == 0)
		return 0;
	fr_directory_name(dirfd, dir, sizeof(dir));
	return fr_fail_errno(d, r, fr_where_hint(r), "cannot remove old dumps of %s", dir);
}

int fr_vacuum_remove(int dirfd, const char *name, struct fr_vacuum_report *ret, struct fr_diag *d)
{
	char base[NAME_MAX + 1], dir[PATH_MAX];
	uint64_t bytes;
	enum fr_name kind;
	struct stat st;
	size_t len;
	int error = 0;

	snprintf(base, sizeof(base), "%s", name);
	len = strlen(base);
	if (len > 5 && !strcmp(base + len - 5, ".json"))
		base[len - 5] = '\0';
	kind = fr_name_kind(base, NULL);
	if (kind != FR_NAME_DUMP && kind != FR_NAME_MERGED_OLDER)
		return fr_fail(
			d, -EINVAL, "flightrecctl list shows the names", "'%s' is no name of a dump", name);
	fr_directory_name(dirfd, dir, sizeof(dir));
	if (fstatat(dirfd, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fr_fail_errno(
			d, -errno, "flightrecctl list shows the names", "cannot remove %s of %s", base, dir);
	bytes = dump_bytes(dirfd, base, true, &error);
	if (error < 0)
		return fr_fail_errno(d, error, fr_where_hint(error), "cannot remove %s of %s", base, dir);
	ret->freed_bytes += bytes;
	if (kind == FR_NAME_MERGED_OLDER)
		ret->freed_bytes += remove_merged_jit(dirfd);
	return note_removed(ret, base);
}

int fr_vacuum_leftovers(int dirfd)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	const struct dirent *e;
	int n = 0;

	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, TEMPORARY, strlen(TEMPORARY)) && unlinkat(dirfd, e->d_name, 0) == 0)
			n++;
	remove_orphans(dirfd);
	return n;
}
