// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/retention.h"
#include "base/cleanup.h"

/* The bytes that the recorder's files use, the free bytes, and the number of dumps, after the removals that
   have been chosen so far. */
struct account {
	uint64_t use, free, files;
};

static uint64_t resolve(uint64_t limit, uint64_t disk_size, unsigned percent)
{
	return limit == FR_RETENTION_DEFAULT ? FR_MIN(disk_size / 100 * percent, FR_RETENTION_CAP) : limit;
}

struct fr_retention fr_retention_resolve(const struct fr_retention *r, uint64_t disk_size)
{
	struct fr_retention ret = *r;

	ret.max_use = resolve(r->max_use, disk_size, 10);
	ret.keep_free = resolve(r->keep_free, disk_size, 15);
	return ret;
}

/* Returns whether the disk has room for the new dump, and KeepFree= holds. */
static bool has_room(
	const struct fr_retention *r, const struct fr_retention_disk *disk, const struct account *a)
{
	return a->free >= disk->need && a->free - disk->need >= r->keep_free;
}

static bool limits_hold(
	const struct fr_retention *r, const struct fr_retention_disk *disk, const struct account *a)
{
	/* The dump that is about to be written counts as one more file. */
	uint64_t files = a->files + (disk->need > 0);

	if (r->max_use && a->use + disk->need > r->max_use)
		return false;
	if (!has_room(r, disk, a))
		return false;
	return !r->max_files || files <= r->max_files;
}

static bool is_too_old(
	const struct fr_retention *r, const struct fr_retention_disk *disk, const struct fr_retention_file *f)
{
	return r->max_age_ns && f->time_ns < disk->now_ns && disk->now_ns - f->time_ns > r->max_age_ns;
}

static void choose_file(struct account *a, struct fr_retention_file *f)
{
	f->remove = true;
	a->files--;
	a->use -= f->bytes;
	a->free += f->bytes;
}

bool fr_retention_choose(const struct fr_retention *r, const struct fr_retention_disk *disk,
	struct fr_retention_file *files, size_t n)
{
	struct account a = {.use = disk->other, .free = disk->free, .files = n};

	for (size_t i = 0; i < n; i++) {
		files[i].remove = false;
		a.use += files[i].bytes;
	}
	for (size_t i = 0; i < n; i++)
		if (!files[i].keep && !files[i].held && is_too_old(r, disk, &files[i]))
			choose_file(&a, &files[i]);
	for (size_t i = 0; i < n && !limits_hold(r, disk, &a); i++)
		if (!files[i].keep && !files[i].held && !files[i].remove)
			choose_file(&a, &files[i]);
	for (size_t i = 0; i < n && !has_room(r, disk, &a); i++)
		if (!files[i].keep && files[i].held)
			choose_file(&a, &files[i]);
	return limits_hold(r, disk, &a);
}
