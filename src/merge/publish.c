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

#define SYMBOLS_MAX (64 << 20)

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

static const char *const suffixes[] = {".json", FR_INPUT_KALLSYMS};

/* Renames OLD.json to NEW.json, if it exists, and also OLD.kallsyms. */
static void move_sidecars(int dirfd, const char *old, const char *new)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(suffixes); i++) {
		char from[NAME_MAX + 16], to[NAME_MAX + 16];

		snprintf(from, sizeof(from), "%s%s", old, suffixes[i]);
		snprintf(to, sizeof(to), "%s%s", new, suffixes[i]);
		(void)renameat2(dirfd, from, dirfd, to, RENAME_NOREPLACE);
	}
}

static void remove_beside(int dirfd, const char *name, const char *suffix)
{
	char path[PATH_MAX];
	const int len = snprintf(path, sizeof(path), "%s%s", name, suffix);

	if (len > 0 && (size_t)len < sizeof(path))
		(void)unlinkat(dirfd, path, 0);
}

/* Does not follow links: the owner of the directory can be another user than the one who merges. */
static int read_symbols(const struct fr_input *in, struct fr_buf *ret)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	ssize_t n;
	int len = snprintf(path, sizeof(path), "%s" FR_INPUT_KALLSYMS, in->path);

	if (len < 0 || (size_t)len >= sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_size > SYMBOLS_MAX)
		return -EFBIG;
	if (fr_buf_reserve(ret, (size_t)st.st_size) < 0)
		return -ENOMEM;
	n = fr_pread_all(fd, ret->data + ret->len, (size_t)st.st_size, 0);
	if (n < 0)
		return (int)n;
	ret->len += (size_t)n;
	return 0;
}

int fr_inputs_read_symbols(const struct fr_inputs *in, struct fr_buf *ret)
{
	int r = 0;

	for (size_t i = 0; i < in->n && r == 0 && ret->len == 0; i++)
		r = read_symbols(&in->v[i], ret);
	return r;
}

/* Writes OUTPUT.json and OUTPUT.kallsyms. Symbols that were left there belong to no file. */
static int write_sidecars(const struct fr_output *out, const char *meta, const struct fr_buf *symbols)
{
	char name[NAME_MAX + 16];
	int r = 0;

	snprintf(name, sizeof(name), "%s.json", out->name);
	if (meta)
		r = fr_file_replace(out->dirfd, name, 0640, out->gid, meta, strlen(meta));
	snprintf(name, sizeof(name), "%s" FR_INPUT_KALLSYMS, out->name);
	if (symbols->len == 0)
		(void)unlinkat(out->dirfd, name, 0);
	else if (r >= 0)
		r = fr_file_replace(out->dirfd, name, 0640, out->gid, symbols->data, symbols->len);
	return r;
}

int fr_output_publish(struct fr_output *out, const char *meta, const struct fr_buf *symbols, char *ret_older,
	struct fr_diag *d)
{
	char older[NAME_MAX + 1];
	int dir_len = (int)(out->name - out->path);
	int r = move_older(out, older);

	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot rename the older %s", out->path);
	if (older[0])
		move_sidecars(out->dirfd, out->name, older);
	r = write_sidecars(out, meta, symbols);
	/* Give the file to root. perf opens a file of root for every user who can read it, and any other file
	   only for its owner, unless it is called with -f. */
	if (r >= 0)
		(void)fr_owner_give(out->fd, (gid_t)-1);
	if (r >= 0)
		r = fr_tmp_publish(out->dirfd, out->tmp, out->name);
	if (r < 0) {
		if (meta)
			remove_beside(out->dirfd, out->name, ".json");
		if (symbols->len)
			remove_beside(out->dirfd, out->name, FR_INPUT_KALLSYMS);
		if (older[0]) {
			(void)fr_tmp_publish(out->dirfd, older, out->name);
			move_sidecars(out->dirfd, older, out->name);
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

		if (!is_removable(one))
			continue;
		if (unlink(one->path) < 0) {
			fr_merge_warn(o, "%s: cannot be removed: %s", one->path, strerror(errno));
			continue;
		}
		n++;
		fr_jit_remove_objects(one);
		if (one->meta)
			remove_beside(AT_FDCWD, one->path, ".json");
		remove_beside(AT_FDCWD, one->path, FR_INPUT_KALLSYMS);
	}
	return n;
}
