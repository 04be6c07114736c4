// SPDX-License-Identifier: GPL-2.0-or-later
#include "objects/cache_internal.h"
#include "objects/vdso.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/foreign.h"
#include "base/trusted.h"
#include "base/thread.h"
#include "perfdata/features.h"
#include "sideband/buildid.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>

#define KALLSYMS_MAX (128u << 20)
#define NOTES_MAX (1u << 20)
#define OWNER_UNKNOWN ((uid_t)-1)
#define COMPARE_STEP (64u << 10)
#define COPY_STEP (4u << 20) /* bytes of one sendfile() */
#define KERNEL "[kernel.kallsyms]"
#define DELETED " (deleted)"

struct id {
	uint8_t bytes[FR_BUILD_ID_MAX];
	size_t len;
	char text[2 * FR_OBJECT_ID_MAX + 1]; /* hexadecimal: the key of an entry */
};

/* Sets the length and the text of ID, whose bytes are set already. LEN is the length; if it is 0 or a
   negative errno, there is no build-id. Returns whether there is a build-id. */
static bool set_id_length(struct id *id, int len)
{
	id->len = len > 0 ? (size_t)len : 0;
	for (size_t i = 0; i < id->len; i++)
		snprintf(id->text + 2 * i, 3, "%02x", id->bytes[i]);
	return len > 0;
}

static int make_directory(const struct fr_object_cache *c, int dirfd, const char *name)
{
	return !strcmp(name, "..") || !strcmp(name, ".") ? -EINVAL
							 : fr_directory_make(dirfd, name, c->config.gid);
}

int fr_object_cache_open(
	const struct fr_object_cache_config *config, struct fr_object_cache **ret, struct fr_diag *d)
{
	struct fr_object_cache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->config = *config;
	c->fd = -1;
	c->fd = make_directory(c, config->dirfd, config->name);
	r = c->fd < 0 ? c->fd : object_cache_scan(c);
	if (r < 0) {
		fr_object_cache_free(c);
		return fr_fail_errno(d, r,
			"If it is not a directory, remove it, or set CacheObjects=no; then restart.",
			"cannot keep object files in %s of the output directory", config->name);
	}
	*ret = c;
	return 0;
}

bool fr_object_cache_is_in_place(const struct fr_object_cache *c)
{
	return fr_file_is_at(c->fd, c->config.dirfd, c->config.name);
}

struct fr_object_cache *fr_object_cache_free(struct fr_object_cache *c)
{
	if (!c)
		return NULL;
	fr_closep(&c->fd);
	free(c->entries);
	free(c);
	return NULL;
}

void fr_object_cache_stats(const struct fr_object_cache *c, struct fr_object_cache_stats *ret)
{
	*ret = c->stats;
}

/* Opens the directory PATH/LAST below the cache, and creates the directories that do not exist. A symbolic
   link in PATH is an error. Returns a descriptor or a negative errno. */
static int make_path(const struct fr_object_cache *c, const char *path, const char *last)
{
	_cleanup_free_ char *copy = strdup(path);
	char *save = NULL, *part = copy ? strtok_r(copy, "/", &save) : NULL;
	int at = copy ? fcntl(c->fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (at < 0)
		return copy ? -errno : -ENOMEM;
	for (bool more = true; more && at >= 0; part = strtok_r(NULL, "/", &save)) {
		int next = make_directory(c, at, part ? part : last);

		close(at);
		at = next;
		more = part;
	}
	return at;
}

/* Formats the path of an object in the cache: PATH without leading slashes, and without DELETED, which the
   kernel appends to the name of a removed file. Returns false if the result is empty or too long. */
static bool format_cache_path(const char *path, char ret[static PATH_MAX])
{
	size_t n = strlen(path), suffix = strlen(DELETED);

	if (n > suffix && strcmp(path + n - suffix, DELETED) == 0)
		n -= suffix;
	while (n > 0 && *path == '/') {
		path++;
		n--;
	}
	if (n == 0 || n + 2 * FR_OBJECT_ID_MAX + 16 > PATH_MAX)
		return false;
	memcpy(ret, path, n);
	ret[n] = '\0';
	return true;
}

/* Creates the symbolic link .build-id/XX/REST to PATH/ID, where XXREST is ID. An existing link stays. */
static int link_id(const struct fr_object_cache *c, const char *path, const char *id)
{
	char directory[16], target[PATH_MAX + 64];
	_cleanup_close_ int fd = -1;

	snprintf(directory, sizeof(directory), "%.2s", id);
	fd = make_path(c, ".build-id", directory);
	if (fd < 0)
		return fd;
	snprintf(target, sizeof(target), "../../%s/%s", path, id);
	if (symlinkat(target, fd, id + 2) == 0 || errno == EEXIST)
		return 0;
	return -errno;
}

static int create_marker(int directory, const char *name)
{
	_cleanup_close_ int fd = openat(directory, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : 0;
}

/* Moves the complete file TMP to PATH/ID/FILE, and adds the entry. If TMP is NULL, the entry is contested and
   gets no copy. Returns 0 or a negative errno. */
static int publish(struct fr_object_cache *c, const char *tmp, const char *path, const char *id,
	const char *file, uint64_t bytes, uid_t owner)
{
	_cleanup_close_ int directory = make_path(c, path, id);
	char marker[sizeof(OBJECT_OWNER_PREFIX) + 16] = OBJECT_CONTESTED;
	int r = FR_MIN(directory, 0);

	if (tmp)
		snprintf(marker, sizeof(marker), OBJECT_OWNER_PREFIX "%u", owner);
	if (r == 0 && (!tmp || owner))
		r = create_marker(directory, marker);
	if (r == 0 && tmp && renameat(c->fd, tmp, directory, file) < 0)
		r = -errno;
	if (r == 0)
		r = link_id(c, path, id);
	if (r == 0)
		r = object_cache_remember(c, id, bytes, owner);
	if (r < 0)
		return r;
	c->entries[c->n - 1].contested = !tmp;
	c->stats.added += tmp != NULL;
	return 0;
}

/* Removes the copy of ID and marks ID as contested. Returns 1 or a negative errno. */
static int contest(struct fr_object_cache *c, const char *path, const char *id)
{
	int r;

	object_cache_drop(c, id);
	r = object_cache_make_room(c, 0) ? publish(c, NULL, path, id, NULL, 0, 0) : 1;
	return r < 0 ? r : 1;
}

/* Creates a temporary file. WORLD says whether every user is allowed to read the original. Returns a
   descriptor or a negative errno. */
static int create_tmp(struct fr_object_cache *c, bool world, char *ret_tmp)
{
	int fd = fr_tmp_create(c->fd, "object", 0600, ret_tmp, NAME_MAX + 1);

	if (fd < 0)
		return fd;
	/* The group is allowed to read the copy only if every user is allowed to read the original. */
	if (c->config.gid != (gid_t)-1 && fchown(fd, (uid_t)-1, c->config.gid) == 0 && world)
		(void)fchmod(fd, 0640);
	return fd;
}

/* Makes a reflink if the file system can do so; otherwise copies SIZE bytes. (A hard link would show later
   changes of the original.) Returns 0; -ESTALE if the original is now shorter than SIZE; or another negative
   errno. */
static int copy_bytes(int from, int to, uint64_t size)
{
	off_t at = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while ((uint64_t)at < size) {
		ssize_t n = sendfile(to, from, &at, FR_MIN(size - (uint64_t)at, (uint64_t)COPY_STEP));

		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
	}
	return 0;
}

/* Copies the file FROM. Returns 0; 1 if the copy is too short or has another build-id than ID; or a negative
   errno. */
static int copy_checked(int from, int to, uint64_t size, const struct id *id)
{
	uint8_t have[FR_BUILD_ID_MAX];
	int r = copy_bytes(from, to, size);

	if (r < 0)
		return r == -ESTALE ? 1 : r;
	r = fr_build_id_read(to, have);
	return r < 0 || (size_t)r != id->len || memcmp(have, id->bytes, id->len) != 0;
}

/* Adds the file FROM, or the bytes DATA if FROM is -1. WORLD says whether every user is allowed to read the
   original. Returns the same values as fr_object_cache_add(). */
static int add_copy(struct fr_object_cache *c, const char *path, const char *file, const struct id *id,
	int from, const void *data, uint64_t size, bool world, uid_t owner)
{
	char tmp[NAME_MAX + 1];
	_cleanup_close_ int to = -1;
	int r;

	if (!object_cache_make_room(c, size))
		return 1;
	to = create_tmp(c, world, tmp);
	if (to < 0)
		return to;
	r = from < 0 ? fr_write_all(to, data, size) : copy_checked(from, to, size, id);
	if (r == 0 && fdatasync(to) < 0)
		r = -errno;
	if (r == 0)
		r = publish(c, tmp, path, id->text, file, size, owner);
	if (r != 0)
		(void)unlinkat(c->fd, tmp, 0);
	return r;
}

/* Opens the file of O. If I is 0, opens it by /proc/PID/map_files; if 1, by its path in the root directory of
   the process; if 2, by its path in our root directory. Returns a descriptor or a negative errno. */
static int open_object(const struct fr_object *o, int i, struct stat *st)
{
	if (i == 0)
		return fr_foreign_open_map(o->pid, o->start, o->end, st);
	return fr_foreign_open(i == 1 ? o->pid : 0, o->path, st);
}

/* Returns whether FD is the file that was mapped. RET gets its build-id. */
static bool is_mapped_file(const struct fr_object *o, int fd, const struct stat *st, struct id *ret)
{
	if (!set_id_length(ret, fr_build_id_read(fd, ret->bytes)))
		return false;
	if (o->id_len == 0)
		return o->ino && o->ino == st->st_ino;
	return o->id_len == ret->len && memcmp(o->id, ret->bytes, o->id_len) == 0;
}

/* Returns the user who may have forged the build-id of the file, which was opened by way of PID: its owner;
   or OWNER_UNKNOWN if it is a file of root that other users can have changed. */
static uid_t find_owner(pid_t pid, int fd, const struct stat *st)
{
	return st->st_uid == 0 && !fr_is_trusted_file(pid, fd) ? OWNER_UNKNOWN : st->st_uid;
}

/* Returns whether the copy of E has the same bytes as the file FD. */
static bool is_same(const struct fr_object_cache *c, const struct object_entry *e, int fd, uint64_t size)
{
	_cleanup_close_ int directory = object_cache_open_entry(c, e->id, NULL);
	_cleanup_close_ int have = directory < 0 ? -1 : openat(directory, "elf", O_RDONLY | O_CLOEXEC);
	_cleanup_free_ uint8_t *block = malloc(2 * COMPARE_STEP);

	if (have < 0 || !block || size != e->bytes)
		return false;
	for (uint64_t at = 0; at < size; at += COMPARE_STEP) {
		const size_t n = FR_MIN(size - at, (uint64_t)COMPARE_STEP);

		if (fr_pread_all(fd, block, n, (off_t)at) != (ssize_t)n ||
			fr_pread_all(have, block + COMPARE_STEP, n, (off_t)at) != (ssize_t)n ||
			memcmp(block, block + COMPARE_STEP, n) != 0)
			return false;
	}
	return true;
}

/* The cache has an entry E with the build-id of the file FD, which belongs to OWNER. Returns 0 if the copy of
   E also serves for FD; 1 if no copy serves for FD, because the build-id is contested; 2 if E was removed, so
   that a copy of FD can take its place; or a negative errno. */
static int resolve_conflict(struct fr_object_cache *c, const struct object_entry *e, int fd,
	const struct stat *st, uid_t owner, const char *path)
{
	char id[sizeof(e->id)];

	if (e->owner == 0 && !e->contested)
		return 0;
	memcpy(id, e->id, sizeof(id));
	if (owner == 0) {
		object_cache_drop(c, id);
		return 2;
	}
	if (e->contested)
		return 1;
	if ((e->owner == owner && owner != OWNER_UNKNOWN) || is_same(c, e, fd, (uint64_t)st->st_size))
		return 0;
	return contest(c, path, id);
}

/* Does the same as resolve_conflict() if the file of PATH is gone. In this case, the copy of E serves for
   PATH only if it was made from PATH, or from a file of root. Returns 0, 1 or a negative errno. */
static int resolve_without_file(struct fr_object_cache *c, const struct object_entry *e, const char *path)
{
	char have[PATH_MAX], id[sizeof(e->id)];
	_cleanup_close_ int fd = -1;
	const size_t n = strlen(path);

	if (e->owner == 0 || e->contested)
		return e->contested;
	memcpy(id, e->id, sizeof(id));
	fd = object_cache_open_entry(c, id, have);
	if (fd >= 0 && strncmp(have, path, n) == 0 && have[n] == '/')
		return 0;
	return contest(c, path, id);
}

/* Adds a copy of O's file. Returns the same values as fr_object_cache_add(); or -ENOENT if there is no such
   file. */
static int add_from_file(struct fr_object_cache *c, const struct fr_object *o, const char *path)
{
	for (int i = 0; i < 3; i++) {
		struct stat st;
		_cleanup_close_ int fd = open_object(o, i, &st);
		const struct object_entry *e;
		struct id id;
		uid_t owner;
		int r = 2;

		if (fd < 0 || !is_mapped_file(o, fd, &st, &id))
			continue;
		owner = find_owner(i < 2 ? o->pid : 0, fd, &st);
		e = object_cache_touch(c, id.text);
		if (e)
			r = resolve_conflict(c, e, fd, &st, owner, path);
		if (r != 2)
			return r;
		if ((uint64_t)st.st_size > c->config.object_max)
			return 1;
		return add_copy(
			c, path, "elf", &id, fd, NULL, (uint64_t)st.st_size, st.st_mode & S_IROTH, owner);
	}
	return -ENOENT;
}

static bool is_trusted(const struct object_entry *e)
{
	return e && e->owner == 0 && !e->contested;
}

/* Adds an object that consists of bytes of the kernel. This object replaces a copy of a user's file with the
   same build-id. */
static int add_kernel_bytes(struct fr_object_cache *c, const char *path, const char *file,
	const struct id *id, const void *data, size_t size)
{
	if (is_trusted(object_cache_touch(c, id->text)))
		return 0;
	object_cache_drop(c, id->text);
	return add_copy(c, path, file, id, -1, data, size, true, 0);
}

static int add_vdso(struct fr_object_cache *c)
{
	const void *data;
	struct id id;
	size_t size;

	if (!set_id_length(&id, fr_vdso_find(&data, &size, id.bytes)))
		return 1;
	return add_kernel_bytes(c, FR_VDSO_NAME, "vdso", &id, data, size);
}

int fr_object_cache_add(struct fr_object_cache *c, const struct fr_object *o)
{
	const struct object_entry *e = NULL;
	char path[PATH_MAX];
	struct id id;
	int r;

	fr_thread_assert_may_wait();
	if (strcmp(o->path, FR_VDSO_NAME) == 0)
		return add_vdso(c);
	if (!format_cache_path(o->path, path))
		return 1;
	memcpy(id.bytes, o->id, o->id_len);
	if (set_id_length(&id, (int)o->id_len))
		e = object_cache_touch(c, id.text);
	if (is_trusted(e))
		return 0;
	r = add_from_file(c, o, path);
	if (r != -ENOENT)
		return r;
	return e ? resolve_without_file(c, e, path) : 1;
}

/* Returns whether the address in the first line is not 0. (The kernel can show 0 instead of each address.) */
static bool has_addresses(const struct fr_buf *kallsyms)
{
	return kallsyms->len > 16 && strspn((const char *)kallsyms->data, "0") < 16;
}

int fr_object_cache_add_kernel(struct fr_object_cache *c)
{
	_cleanup_buf_ struct fr_buf notes = {0}, kallsyms = {0};
	struct id id;

	fr_thread_assert_may_wait();
	if (fr_read_file(AT_FDCWD, "/sys/kernel/notes", NOTES_MAX, &notes) < 0)
		return 1;
	if (!set_id_length(&id, (int)fr_build_id_from_notes(notes.data, notes.len, 4, id.bytes)))
		return 1;
	if (is_trusted(object_cache_touch(c, id.text)))
		return 0;
	if (fr_read_file(AT_FDCWD, "/proc/kallsyms", KALLSYMS_MAX, &kallsyms) < 0 ||
		!has_addresses(&kallsyms))
		return 1;
	return add_kernel_bytes(c, KERNEL, "kallsyms", &id, kallsyms.data, kallsyms.len);
}
