// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/vacuum.h"
#include "dump/file_system.h"
#include "dump/hold.h"
#include "dump/names.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "sideband/auxfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>

#define TEMPORARY "." FR_DUMP_PREFIX
#define MERGED_JIT FR_MERGED_NAME ".jit" /* shared by all merged files */
#define DEPTH_MAX 4

/* The files beside a dump: the sidecar, the directory of run-time code, the symbols of a kernel that crashed,
   and the hold. */
static const char *const suffixes[] = {".json", ".jit", FR_DUMP_KALLSYMS, FR_DUMP_HOLD};

/* Two lists of the files in a directory, oldest first. `dumps` has the dumps, and the older merged files
   (perf.data.TIME). `auxiliaries` has the auxiliary files of recordings that have ended. */
struct listing {
	struct fr_named_file *dumps, *auxiliaries;
	struct fr_retention_file *files; /* one for each element of `dumps` */
	size_t n_dumps, n_auxiliaries;
};

static void listing_deinit(struct listing *l)
{
	free(l->dumps);
	free(l->auxiliaries);
	free(l->files);
}

void fr_vacuum_report_deinit(struct fr_vacuum_report *r)
{
	for (size_t i = 0; i < r->n_removed; i++)
		free(r->removed[i]);
	free(r->removed);
	*r = (struct fr_vacuum_report){0};
}

cJSON *fr_vacuum_json(const struct fr_vacuum_report *r)
{
	cJSON *o = cJSON_CreateObject(), *removed = cJSON_AddArrayToObject(o, "removed");

	for (size_t i = 0; i < r->n_removed; i++)
		cJSON_AddItemToArray(removed, cJSON_CreateString(r->removed[i]));
	cJSON_AddNumberToObject(o, "freed", (double)r->freed_bytes);
	return o;
}

static bool exists(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool has_json(int dirfd, const char *name)
{
	char json[FR_DUMP_NAME_SIZE + 8];

	snprintf(json, sizeof(json), "%s.json", name);
	return exists(dirfd, json);
}

static int listing_init(struct listing *l, int dirfd)
{
	size_t n, kept = 0;
	int r = fr_names_list(dirfd, FR_NAME_DUMP | FR_NAME_MERGED_OLDER, &l->dumps, &n);

	if (r == 0)
		r = fr_names_list(dirfd, FR_NAME_AUXILIARY, &l->auxiliaries, &l->n_auxiliaries);
	if (r < 0)
		return r;
	/* A perf.data.TIME without a JSON is not ours: perf record may have written it. Such a file is not
	   removed. */
	for (size_t i = 0; i < n; i++)
		if (l->dumps[i].kind == FR_NAME_DUMP || has_json(dirfd, l->dumps[i].name))
			l->dumps[kept++] = l->dumps[i];
	l->n_dumps = kept;
	l->files = calloc(kept + 1, sizeof(*l->files));
	return l->files ? 0 : -ENOMEM;
}

/* Visits the file or directory NAME, and the content of the directory down to DEPTH_MAX levels, without
   following links. If REMOVE is true, also removes what is visited. Returns how many bytes of the disk the
   visited files and directories take. ERROR (may be NULL) gets the negative errno of the last failed
   removal. */
static uint64_t walk_tree(int parent, const char *name, bool remove, unsigned depth, int *error)
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
				bytes += walk_tree(dirfd(dir), e->d_name, remove, depth + 1, error);
	}
	if (remove && unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT &&
		error)
		*error = -errno;
	return bytes;
}

/* Visits the dump NAME and the files beside it. If REMOVE is true, also removes them, the dump first. If a
   crash interrupts the removal, remove_orphan() later finds the remaining files by their names. Returns how
   many bytes of the disk they take. */
static uint64_t walk_dump(int dirfd, const char *name, bool remove, int *error)
{
	const bool is_merged = fr_name_kind(name, NULL) == FR_NAME_MERGED_OLDER;
	uint64_t bytes = walk_tree(dirfd, name, remove, 0, error);

	for (size_t i = 0; i < FR_ARRAY_SIZE(suffixes); i++) {
		char full[NAME_MAX + 1];

		if (is_merged && strcmp(suffixes[i], ".jit") == 0)
			continue; /* see MERGED_JIT */
		snprintf(full, sizeof(full), "%s%s", name, suffixes[i]);
		bytes += walk_tree(dirfd, full, remove, 0, error);
	}
	return bytes;
}

static int report_removed(struct fr_vacuum_report *ret, const char *name, uint64_t bytes)
{
	char **grown = reallocarray(ret->removed, ret->n_removed + 2, sizeof(*grown));

	ret->freed_bytes += bytes;
	if (!grown)
		return -ENOMEM;
	ret->removed = grown;
	grown[ret->n_removed] = strdup(name);
	if (!grown[ret->n_removed])
		return -ENOMEM;
	grown[++ret->n_removed] = NULL;
	return 0;
}

/* Removes the directory MERGED_JIT if there is no merged file any more. Returns the number of freed bytes. */
static uint64_t remove_unused_merged_jit(int dirfd)
{
	_cleanup_free_ struct fr_named_file *merged = NULL;
	size_t n;

	if (fr_names_list(dirfd, FR_NAME_MERGED | FR_NAME_MERGED_OLDER, &merged, &n) < 0 || n > 0)
		return 0;
	return walk_tree(dirfd, MERGED_JIT, true, 0, NULL);
}

/* Removes the chosen dumps. If a dump cannot be removed, goes on with the next one. Returns the first
   error. */
static int remove_chosen(int dirfd, const struct listing *l, struct fr_vacuum_report *ret)
{
	bool merged = false;
	int r = 0;

	for (size_t i = 0; i < l->n_dumps; i++) {
		int error = 0;
		uint64_t bytes;

		if (!l->files[i].remove) {
			ret->files++;
			ret->bytes += l->files[i].bytes;
			continue;
		}
		bytes = walk_dump(dirfd, l->dumps[i].name, true, &error);
		if (error == 0) {
			merged |= l->dumps[i].kind == FR_NAME_MERGED_OLDER;
			error = report_removed(ret, l->dumps[i].name, bytes);
			ret->n_held_removed += l->files[i].held;
		}
		r = r ? r : error;
	}
	if (merged)
		ret->freed_bytes += remove_unused_merged_jit(dirfd);
	return r;
}

/* Returns whether a dump remains that needs this auxiliary file. */
static bool is_needed(const struct listing *l, size_t auxiliary)
{
	uint64_t previous = auxiliary ? l->auxiliaries[auxiliary - 1].time_ns : 0;

	for (size_t i = 0; i < l->n_dumps; i++)
		if (!l->files[i].remove && l->dumps[i].kind == FR_NAME_DUMP &&
			fr_auxfile_is_needed_by(
				l->dumps[i].time_ns, previous, l->auxiliaries[auxiliary].time_ns))
			return true;
	return false;
}

static void remove_auxiliaries(int dirfd, const struct listing *l, struct fr_vacuum_report *ret)
{
	for (size_t i = 0; i < l->n_auxiliaries; i++)
		if (!is_needed(l, i))
			ret->freed_bytes += walk_tree(dirfd, l->auxiliaries[i].name, true, 0, NULL);
}

/* Returns whether the dump NAME is held. Ends a hold that is too old, and counts it in RET. */
static bool is_held(int dirfd, const char *name, uint64_t now_ns, struct fr_vacuum_report *ret)
{
	const int r = fr_hold_check(dirfd, name, now_ns);

	if (r != -ETIME)
		return r > 0;
	fr_hold_remove(dirfd, name);
	ret->n_holds_expired++;
	return false;
}

static int measure(int dirfd, const struct listing *l, uint64_t keep_from_ns, struct fr_retention_disk *disk,
	struct fr_vacuum_report *ret)
{
	struct statvfs v;

	if (fstatvfs(dirfd, &v) < 0)
		return -errno;
	disk->size = (uint64_t)v.f_blocks * v.f_frsize;
	disk->free = (uint64_t)v.f_bavail * v.f_frsize;
	disk->now_ns = fr_now_ns(CLOCK_REALTIME);
	for (size_t i = 0; i < l->n_auxiliaries; i++)
		disk->other += walk_tree(dirfd, l->auxiliaries[i].name, false, 0, NULL);
	disk->other += walk_tree(dirfd, MERGED_JIT, false, 0, NULL);
	for (size_t i = 0; i < l->n_dumps; i++)
		l->files[i] = (struct fr_retention_file){
			.time_ns = l->dumps[i].time_ns,
			.bytes = walk_dump(dirfd, l->dumps[i].name, false, NULL),
			.keep = l->dumps[i].time_ns >= keep_from_ns,
			.held = l->dumps[i].kind == FR_NAME_DUMP &&
				is_held(dirfd, l->dumps[i].name, disk->now_ns, ret),
		};
	return 0;
}

/* Chooses the dumps to remove. If a dump is about to be written and not all limits can hold, ignores MaxUse=
   and KeepFree=: chooses only as many dumps as MaxFiles=, MaxAge= and the room for the new dump require. If
   the new dump does not fit even after the removal of all old dumps, chooses none. Returns whether all limits
   will hold. */
static bool choose(
	const struct fr_retention *limits, const struct fr_retention_disk *disk, const struct listing *l)
{
	const struct fr_retention room = {.max_files = limits->max_files, .max_age_ns = limits->max_age_ns};

	if (fr_retention_choose(limits, disk, l->files, l->n_dumps))
		return true;
	if (disk->need && !fr_retention_choose(&room, disk, l->files, l->n_dumps))
		for (size_t i = 0; i < l->n_dumps; i++)
			l->files[i].remove = false;
	return false;
}

static int apply_limits(int dirfd, const struct fr_retention *limits, uint64_t need_bytes,
	uint64_t keep_from_ns, struct fr_vacuum_report *ret)
{
	_cleanup_(listing_deinit) struct listing l = {0};
	struct fr_retention_disk disk = {.need = need_bytes};
	struct fr_retention resolved;
	int r = listing_init(&l, dirfd);

	if (r == 0)
		r = measure(dirfd, &l, keep_from_ns, &disk, ret);
	if (r < 0)
		return r;
	resolved = fr_retention_resolve(limits, disk.size);
	ret->fits = choose(&resolved, &disk, &l);
	r = remove_chosen(dirfd, &l, ret);
	remove_auxiliaries(dirfd, &l, ret);
	return r;
}

int fr_vacuum(int dirfd, const struct fr_retention *limits, uint64_t need_bytes, uint64_t keep_from_ns,
	struct fr_vacuum_report *ret, struct fr_diag *d)
{
	_cleanup_(fr_vacuum_report_deinit) struct fr_vacuum_report own = {0};
	struct fr_vacuum_report *report = ret ? ret : &own;
	char dir[PATH_MAX];
	int r;

	fr_thread_assert_may_wait();
	report->files = report->bytes = 0;
	r = apply_limits(dirfd, limits, need_bytes, keep_from_ns, report);
	if (r == 0)
		return 0;
	fr_directory_name(dirfd, dir, sizeof(dir));
	return fr_fail_errno(d, r, fr_file_system_hint(r), "cannot remove old dumps of %s", dir);
}

/* Copies NAME without SUFFIX to RET. Returns whether NAME ends with SUFFIX and the rest is the name of a
   dump. */
static bool find_dump_name(const char *name, const char *suffix, char ret[static NAME_MAX + 1])
{
	const size_t all = strlen(name), len = strlen(suffix);

	if (all < len || strcmp(name + all - len, suffix) != 0)
		return false;
	snprintf(ret, NAME_MAX + 1, "%.*s", (int)(all - len), name);
	return fr_name_kind(ret, NULL) & (FR_NAME_DUMP | FR_NAME_MERGED_OLDER);
}

int fr_vacuum_remove(int dirfd, const char *name, struct fr_vacuum_report *ret, struct fr_diag *d)
{
	static const char hint[] = "see `flightrecctl list` for the names";
	char base[NAME_MAX + 1], dir[PATH_MAX];
	uint64_t bytes;
	int error = 0;

	fr_thread_assert_may_wait();
	if (!find_dump_name(name, ".json", base) && !find_dump_name(name, "", base))
		return fr_fail(d, -EINVAL, hint, "'%s' is not the name of a dump", name);
	fr_directory_name(dirfd, dir, sizeof(dir));
	if (!exists(dirfd, base))
		return fr_fail_errno(d, -errno, hint, "cannot remove %s of %s", base, dir);
	bytes = walk_dump(dirfd, base, true, &error);
	if (error < 0)
		return fr_fail_errno(
			d, error, fr_file_system_hint(error), "cannot remove %s of %s", base, dir);
	if (fr_name_kind(base, NULL) == FR_NAME_MERGED_OLDER)
		bytes += remove_unused_merged_jit(dirfd);
	return report_removed(ret, base, bytes);
}

/* Removes NAME if it belongs to a dump that does not exist: an interrupted removal has left it. */
static void remove_orphan(int dirfd, const char *name)
{
	char dump[NAME_MAX + 1];

	for (size_t i = 0; i < FR_ARRAY_SIZE(suffixes); i++)
		if (find_dump_name(name, suffixes[i], dump) && !exists(dirfd, dump) && errno == ENOENT)
			(void)walk_tree(dirfd, name, true, 0, NULL);
}

int fr_vacuum_leftovers(int dirfd)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	const struct dirent *e;
	int n = 0;

	fr_thread_assert_may_wait();
	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		if (strncmp(e->d_name, TEMPORARY, strlen(TEMPORARY)))
			remove_orphan(dirfd, e->d_name);
		else if (unlinkat(dirfd, e->d_name, 0) == 0)
			n++;
	return n;
}
