// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/hold.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "dump/file_system.h"
#include "dump/names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void hold_name(const char *name, char ret[static NAME_MAX + 1])
{
	snprintf(ret, NAME_MAX + 1, "%.200s%s", name, FR_DUMP_HOLD);
}

int fr_hold_make(int dirfd, const char *name)
{
	char hold[NAME_MAX + 1];
	_cleanup_close_ int fd = -1;

	fr_thread_assert_may_wait();
	hold_name(name, hold);
	fd = openat(dirfd, hold, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	return fd < 0 ? -errno : 0;
}

void fr_hold_remove(int dirfd, const char *name)
{
	char hold[NAME_MAX + 1];

	hold_name(name, hold);
	(void)unlinkat(dirfd, hold, 0);
}

int fr_hold_check(int dirfd, const char *name, uint64_t now_ns)
{
	char hold[NAME_MAX + 1];
	struct stat st;
	uint64_t made_ns;

	hold_name(name, hold);
	if (fstatat(dirfd, hold, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	made_ns = (uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	return now_ns > made_ns && now_ns - made_ns > FR_HOLD_MAX_NS ? -ETIME : 1;
}

int fr_hold_release(int dirfd, const char *name, struct fr_diag *d)
{
	static const char hint[] = "see `flightrecctl list` for the names";
	char hold[NAME_MAX + 1], dir[PATH_MAX];
	struct stat st;

	fr_thread_assert_may_wait();
	if (fr_name_kind(name, NULL) != FR_NAME_DUMP)
		return fr_fail(d, -EINVAL, hint, "'%.128s' is not the name of a dump", name);
	fr_directory_name(dirfd, dir, sizeof(dir));
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fr_fail_errno(d, -errno, hint, "cannot release %s of %s", name, dir);
	hold_name(name, hold);
	if (unlinkat(dirfd, hold, 0) == 0 || errno == ENOENT)
		return 0;
	return fr_fail_errno(d, -errno, fr_file_system_hint(-errno), "cannot release %s of %s", name, dir);
}

static uint64_t size_of(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

int fr_holds_count(int dirfd, uint64_t *ret_n, uint64_t *ret_bytes)
{
	_cleanup_free_ struct fr_named_file *dumps = NULL;
	const uint64_t now_ns = fr_now_ns(CLOCK_REALTIME);
	uint64_t held = 0, bytes = 0;
	size_t n = 0;
	int r;

	fr_thread_assert_may_wait();
	r = fr_names_list(dirfd, FR_NAME_DUMP, &dumps, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		char json[FR_DUMP_NAME_SIZE + 8];

		if (fr_hold_check(dirfd, dumps[i].name, now_ns) <= 0)
			continue;
		snprintf(json, sizeof(json), "%s.json", dumps[i].name);
		held++;
		bytes += size_of(dirfd, dumps[i].name) + size_of(dirfd, json);
	}
	*ret_n = held;
	*ret_bytes = bytes;
	return 0;
}
