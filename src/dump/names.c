// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/names.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <string.h>

enum fr_name fr_name_kind(const char *name, uint64_t *ret_ns)
{
	/* All other prefixes begin with the last prefix, "perf.data.", so this prefix is tried last. */
	static const struct {
		const char *prefix;
		enum fr_name kind;
	} stamped[] = {
		{FR_DUMP_PREFIX, FR_NAME_DUMP},
		{"perf.data.auxiliary.", FR_NAME_AUXILIARY},
		{FR_MERGED_NAME ".", FR_NAME_MERGED_OLDER},
	};
	uint64_t ns;

	if (!ret_ns)
		ret_ns = &ns;
	*ret_ns = 0;
	if (!strcmp(name, FR_MERGED_NAME))
		return FR_NAME_MERGED;
	for (size_t i = 0; i < FR_ARRAY_SIZE(stamped); i++) {
		const char *prefix = stamped[i].prefix;

		if (!strncmp(name, prefix, strlen(prefix)) &&
			fr_stamp_parse(name + strlen(prefix), ret_ns) == 0)
			return stamped[i].kind;
	}
	return FR_NAME_OTHER;
}

void fr_dump_name(uint64_t realtime_ns, char ret[static FR_DUMP_NAME_SIZE])
{
	char stamp[FR_STAMP_SIZE];

	fr_stamp_format(realtime_ns, stamp);
	snprintf(ret, FR_DUMP_NAME_SIZE, FR_DUMP_PREFIX "%s", stamp);
}

static int compare_times(const void *a, const void *b)
{
	const struct fr_named_file *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

int fr_names_list(int dirfd, unsigned kinds, struct fr_named_file **ret, size_t *ret_n)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(dirfd, ".");
	_cleanup_free_ struct fr_named_file *files = NULL;
	const struct dirent *e;
	size_t n = 0;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		struct fr_named_file *grown, file = {0};
		struct stat st;

		file.kind = fr_name_kind(e->d_name, &file.time_ns);
		if (!(file.kind & kinds))
			continue;
		memcpy(file.name, e->d_name, strnlen(e->d_name, sizeof(file.name) - 1));
		if (file.kind == FR_NAME_MERGED && fstatat(dirfd, e->d_name, &st, 0) == 0)
			file.time_ns =
				(uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
		grown = reallocarray(files, n + 1, sizeof(*files));
		if (!grown)
			return -ENOMEM;
		files = grown;
		files[n++] = file;
	}
	if (n)
		qsort(files, n, sizeof(*files), compare_times);
	*ret = TAKE_PTR(files);
	*ret_n = n;
	return 0;
}
