// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/retention.h"
#include "base/cleanup.h"

/* What there is, as files go. */
struct account {
	uint64_t use, free, files;
};

static uint64_t part(uint64_t set, uint64_t disk_size, unsigned percent)
{
	return set == FR_RETENTION_DEFAULT ? FR_MIN(disk_size / 100 * percent, FR_RETENTION_CAP) : set;
}

struct fr_retention fr_retention_resolve(const struct fr_retention *r, uint64_t disk_size)
{
	struct fr_retention ret = *r;

	ret.max_use = part(r->max_use, disk_size, 10);
	ret.keep_free = part(r->keep_free, disk_size, 15);
	return ret;
}

static bool holds(const struct fr_retention *r, const struct fr_retention_disk *disk, const struct account *a)
{
	/* A dump that is to come counts as one that is there. */
	uint64_t files = a->files + (disk->need > 0);

	if (r->max_use && a->use + disk->need > r->max_use)
		return false;
	if (a->free < disk->need || a->free - disk->need < r->keep_free)
		return false;
	return !r->max_files || files <= r->max_files;
}

static bool too_old(
	const struct fr_retention *r, const struct fr_retention_disk *disk, const struct fr_retention_file *f)
{
	return r->max_age_ns && f->time_ns < disk->now_ns && disk->now_ns - f->time_ns > r->max_age_ns;
}

static void drop(struct account *a, struct fr_retention_file *f)
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
		if (!files[i].keep && too_old(r, disk, &files[i]))
			drop(&a, &files[i]);
	for (size_t i = 0; i < n && !holds(r, disk, &a); i++)
		if (!files[i].keep && !files[i].remove)
			drop(&a, &files[i]);
	return holds(r, disk, &a);
}
