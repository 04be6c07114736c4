// SPDX-License-Identifier: GPL-2.0-or-later
/* What else is in the directory: sample files, and what runs before have left. */
#include "sideband/auxfile_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* A machine may be silent for a while before a dump: a sample file that is so much younger than an auxiliary
   file's last change may still be of its run. */
#define LATER_NS (600 * FR_NSEC_PER_SEC)
#define OLDER_MAX 4096u

/* The time in a name of PREFIX and a stamp. */
static bool has_stamp(const char *name, const char *prefix, uint64_t *ret_ns)
{
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 && fr_stamp_parse(name + n, ret_ns) == 0;
}

int auxfile_has_samples(int dirfd)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	const struct dirent *e;
	uint64_t t;

	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		if (has_stamp(e->d_name, SAMPLE_PREFIX, &t))
			return 1;
	return 0;
}

void auxfile_remove_temporary(int dirfd)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, TMP_PREFIX, strlen(TMP_PREFIX)))
			(void)unlinkat(dirfd, e->d_name, 0);
}

struct older {
	uint64_t end_ns;
	bool wanted;
	char name[sizeof(FR_AUXFILE_NAME) + FR_STAMP_SIZE];
};

static int by_end(const void *a, const void *b)
{
	const struct older *x = a, *y = b;

	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* The auxiliary files of earlier runs, in order. */
static size_t find_older(DIR *dir, struct older **ret)
{
	struct older *all = NULL;
	const struct dirent *e;
	size_t n = 0;
	uint64_t t;

	while (n < OLDER_MAX && (e = readdir(dir))) {
		struct older *grown;

		if (!has_stamp(e->d_name, FR_AUXFILE_NAME ".", &t) || strlen(e->d_name) >= sizeof(all->name))
			continue;
		grown = reallocarray(all, n + 1, sizeof(*all));
		if (!grown)
			break;
		all = grown;
		all[n] = (struct older){.end_ns = t};
		strcpy(all[n++].name, e->d_name);
	}
	if (n)
		qsort(all, n, sizeof(*all), by_end);
	*ret = all;
	return n;
}

/* A run's sample files are older than its auxiliary file's end, more or less, and younger than the end of the
   run before. */
static void want(struct older *all, size_t n, uint64_t sample_ns)
{
	for (size_t i = 0; i < n; i++)
		if (sample_ns <= all[i].end_ns + LATER_NS && (i == 0 || sample_ns > all[i - 1].end_ns))
			all[i].wanted = true;
}

void fr_auxfile_tidy(int dirfd)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	_cleanup_free_ struct older *all = NULL;
	const struct dirent *e;
	uint64_t t;
	size_t n;

	if (!dir)
		return;
	n = find_older(dir, &all);
	if (n == 0)
		return;
	rewinddir(dir);
	while ((e = readdir(dir)))
		if (has_stamp(e->d_name, SAMPLE_PREFIX, &t))
			want(all, n, t);
	for (size_t i = 0; i < n; i++)
		if (!all[i].wanted)
			(void)unlinkat(dirfd, all[i].name, 0);
}
