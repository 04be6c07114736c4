/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A temporary directory, called the root, with files that replace the files of a machine. */

#include "unit.h"
#include "base/cleanup.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

static inline int make_root(void **state)
{
	strcpy(root, "/tmp/flightrec-test-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline int remove_root(void **state)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Write TEXT to the file PATH below the root. Returns the whole path, which is valid until the next call. */
static inline const char *write_file(const char *path, const char *text)
{
	static char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		(void)mkdir(full, 0755);
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return full;
}
