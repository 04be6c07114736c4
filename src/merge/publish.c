// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Publishes the output in this order, so that a power failure loses nothing:
 *   1. The new file is synced under its temporary name.
 *   2. An older output is renamed.
 *   3. The new file gets its name, and the directory is synced.
 *   4. The inputs are removed.
 */

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/owner.h"
#include "merge/jit.h"
#include "merge/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Renames an older output to NAME.TIME. TIME is its modification time, or the next microsecond if this name
   is taken. RET_NAME gets the new name, or "" if there is no older output. The directory is synced later. */
static int move_older(const struct fr_output *out, char ret_name[static NAME_MAX + 1])
{
	struct stat st;
	uint64_t t;

	ret_name[0] = '\0';
	if (fstatat(out->dirfd, out->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	t = (uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	for (int tries = 0; tries < 1000; tries++, t += FR_NSEC_PER_USEC) {
		char stamp[FR_STAMP_SIZE];
		int n;

		fr_stamp_format(t, stamp);
		n = snprintf(ret_name, NAME_MAX + 1, "%s.%s", out->name, stamp);
		if (n < 0 || n > NAME_MAX)
			return -ENAMETOOLONG;
		n = fr_tmp_publish(out->dirfd, out->name, ret_name);
		if (n != -EEXIST)
			return FR_MIN(n, 0);
	}
	return -EEXIST;
}

/* Renames OLD.json to NEW.json, if it exists. */
static void move_sidecar(int dirfd, const char *old, const char *new)
{
	char from[NAME_MAX + 8], to[NAME_MAX + 8];

	snprintf(from, sizeof(from), "%s.json", old);
	snprintf(to, sizeof(to), "%s.json", new);
	(void)renameat2(dirfd, from, dirfd, to, RENAME_NOREPLACE);
}

int fr_output_publish(struct fr_output *out, const char *meta, char *ret_older, struct fr_diag *d)
{
	char older[NAME_MAX + 1], json[NAME_MAX + 8];
	int dir_len = (int)(out->name - out->path);
	int r = move_older(out, older);

	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot rename the older %s", out->path);
	if (older[0])
		move_sidecar(out->dirfd, out->name, older);
	snprintf(json, sizeof(json), "%s.json", out->name);
	r = meta ? fr_file_replace(out->dirfd, json, 0640, out->gid, meta, strlen(meta)) : 0;
	/* Give the file to root. perf opens a file of root for every user who can read it, and any other file
	   only for its owner, unless it is called with -f. */
	if (r >= 0)
		(void)fr_owner_give(out->fd, (gid_t)-1);
	if (r >= 0)
		r = fr_tmp_publish(out->dirfd, out->tmp, out->name);
	if (r < 0) {
		if (meta)
			(void)unlinkat(out->dirfd, json, 0);
		if (older[0]) {
			(void)fr_tmp_publish(out->dirfd, older, out->name);
			move_sidecar(out->dirfd, older, out->name);
		}
		return fr_fail_errno(d, r, NULL, "cannot rename the new file to %s", out->path);
	}
	out->tmp[0] = '\0';
	ret_older[0] = '\0';
	if (older[0])
		snprintf(ret_older, PATH_MAX, "%.*s%s", dir_len, out->path, older);
	return r;
}

/* Returns whether the input can be removed: it is not damaged, no flightrecd
   writes to it, and its path still names the file that was read, with the same size. */
static bool is_removable(const struct fr_input *in)
{
	struct stat st;

	if (in->damaged || in->live || lstat(in->path, &st) < 0)
		return false;
	return st.st_dev == in->dev && st.st_ino == in->ino && (uint64_t)st.st_size == in->size;
}

size_t fr_inputs_remove(const struct fr_merge_options *o, const struct fr_inputs *in)
{
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++) {
		const struct fr_input *one = &in->v[i];
		char json[PATH_MAX];
		int len = snprintf(json, sizeof(json), "%s.json", one->path);

		if (!is_removable(one))
			continue;
		if (unlink(one->path) < 0) {
			fr_merge_warn(o, "%s: cannot be removed: %s", one->path, strerror(errno));
			continue;
		}
		n++;
		fr_jit_remove_objects(one);
		if (one->meta && len > 0 && (size_t)len < sizeof(json))
			(void)unlink(json);
	}
	return n;
}
