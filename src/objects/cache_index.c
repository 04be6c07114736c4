// SPDX-License-Identifier: GPL-2.0-or-later
#include "objects/cache_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* An entry occupies at least this much of the disk. So this also limits the number of entries. */
#define ENTRY_BYTES 4096u
#define KEYS ".build-id"

#define KEY_SIZE (sizeof(KEYS) + sizeof(((struct object_entry *)0)->id) + 4)

static void format_key(const char *id, char ret[static KEY_SIZE])
{
	snprintf(ret, KEY_SIZE, KEYS "/%.2s/%s", id, id + 2);
}

/* Reads the target of the link ".build-id/XX/REST", without its "../../". Returns false if there is no link,
   or if its target is not inside the cache. */
static bool read_target(const struct fr_object_cache *c, const char *id, char ret[static PATH_MAX])
{
	char key[KEY_SIZE], link[PATH_MAX];
	ssize_t n;

	format_key(id, key);
	n = readlinkat(c->fd, key, link, sizeof(link) - 1);
	if (n <= 6)
		return false;
	link[n] = '\0';
	if (strncmp(link, "../../", 6) != 0 || strstr(link + 6, "..") || link[6] == '/')
		return false;
	strcpy(ret, link + 6);
	return true;
}

int object_cache_remember(struct fr_object_cache *c, const char *id, uint64_t bytes, uid_t owner)
{
	struct object_entry *v = reallocarray(c->entries, c->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	c->entries = v;
	v[c->n] = (struct object_entry){.bytes = bytes, .used_ns = fr_now_ns(CLOCK_REALTIME), .owner = owner};
	snprintf(v[c->n].id, sizeof(v[c->n].id), "%s", id);
	c->n++;
	c->stats.objects = c->n;
	c->stats.bytes += bytes;
	return 0;
}

/* Adds the entry of ID. Reads the size, the owner and the last use from the directory of the entry. Does
   nothing if there is no such directory. Returns 0 or -ENOMEM. */
static int scan_entry(struct fr_object_cache *c, const char *id)
{
	_cleanup_closedir_ DIR *dir = NULL;
	char path[PATH_MAX];
	const struct dirent *e;
	struct object_entry *entry;
	struct stat st;
	int r;

	if (!read_target(c, id, path))
		return 0;
	dir = fr_opendir_at(c->fd, path);
	if (!dir || fstat(dirfd(dir), &st) < 0)
		return 0;
	r = object_cache_remember(c, id, 0, 0);
	if (r < 0)
		return r;
	entry = &c->entries[c->n - 1];
	entry->used_ns = (uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	while ((e = readdir(dir))) {
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			entry->bytes += (uint64_t)st.st_size;
		entry->contested |= strcmp(e->d_name, OBJECT_CONTESTED) == 0;
		if (strncmp(e->d_name, OBJECT_OWNER_PREFIX, strlen(OBJECT_OWNER_PREFIX)) == 0)
			entry->owner = (uid_t)strtoul(e->d_name + strlen(OBJECT_OWNER_PREFIX), NULL, 10);
	}
	c->stats.bytes += entry->bytes;
	return 0;
}

static bool is_hex(const char *s, size_t least, size_t most)
{
	size_t n = strspn(s, "0123456789abcdef");

	return !s[n] && n >= least && n <= most;
}

static int scan_prefix(struct fr_object_cache *c, int keys, const char *prefix)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(keys, prefix);
	const struct dirent *e;
	int r = 0;

	while (dir && r == 0 && (e = readdir(dir))) {
		char id[2 * FR_OBJECT_ID_MAX + 1];

		if (!is_hex(e->d_name, 1, sizeof(id) - 3))
			continue;
		snprintf(id, sizeof(id), "%.2s%.*s", prefix, (int)sizeof(id) - 3, e->d_name);
		r = scan_entry(c, id);
	}
	return r;
}

int object_cache_scan(struct fr_object_cache *c)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(c->fd, KEYS);
	const struct dirent *e;
	int r = 0;

	/* Remove the incomplete copies that an instance left when it was killed. */
	fr_remove_prefixed(c->fd, ".object.");
	while (dir && r == 0 && (e = readdir(dir)))
		if (is_hex(e->d_name, 2, 2))
			r = scan_prefix(c, dirfd(dir), e->d_name);
	return r;
}

void fr_object_cache_begin_dump(struct fr_object_cache *c)
{
	c->begin_ns = fr_now_ns(CLOCK_REALTIME);
}

int object_cache_open_entry(const struct fr_object_cache *c, const char *id, char *path)
{
	char target[PATH_MAX];
	int fd;

	if (!read_target(c, id, path ? path : target))
		return -ENOENT;
	fd = openat(c->fd, path ? path : target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static struct object_entry *find_entry(struct fr_object_cache *c, const char *id)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->entries[i].id, id) == 0)
			return &c->entries[i];
	return NULL;
}

const struct object_entry *object_cache_touch(struct fr_object_cache *c, const char *id)
{
	struct object_entry *e = find_entry(c, id);
	_cleanup_close_ int fd = e ? object_cache_open_entry(c, id, NULL) : -1;

	if (fd < 0)
		return NULL;
	(void)futimens(fd, NULL);
	e->used_ns = fr_now_ns(CLOCK_REALTIME);
	return e;
}

/* Removes the files of the entry, and directories that have become empty. */
static void remove_files(const struct fr_object_cache *c, const char *id)
{
	char path[PATH_MAX], key[KEY_SIZE];
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *e;

	format_key(id, key);
	if (read_target(c, id, path)) {
		dir = fr_opendir_at(c->fd, path);
		/* Remove the copy first. The files owner-UID and contested restrict the use of the copy, so
		   they must exist as long as the copy. */
		if (dir)
			(void)unlinkat(dirfd(dir), "elf", 0);
		while (dir && (e = readdir(dir)))
			(void)unlinkat(dirfd(dir), e->d_name, 0);
		do {
			if (unlinkat(c->fd, path, AT_REMOVEDIR) < 0)
				break;
			*(strrchr(path, '/') ? strrchr(path, '/') : path) = '\0';
		} while (path[0]);
	}
	(void)unlinkat(c->fd, key, 0);
	key[sizeof(KEYS) + 2] = '\0';
	(void)unlinkat(c->fd, key, AT_REMOVEDIR);
}

static void drop_entry(struct fr_object_cache *c, struct object_entry *e)
{
	remove_files(c, e->id);
	c->stats.bytes -= e->bytes;
	*e = c->entries[--c->n];
	c->stats.objects = c->n;
}

void object_cache_drop(struct fr_object_cache *c, const char *id)
{
	struct object_entry *e = find_entry(c, id);

	if (e)
		drop_entry(c, e);
}

static bool evict_oldest(struct fr_object_cache *c)
{
	struct object_entry *oldest = c->entries;

	for (size_t i = 1; i < c->n; i++)
		if (c->entries[i].used_ns < oldest->used_ns)
			oldest = &c->entries[i];
	if (c->n == 0 || oldest->used_ns >= c->begin_ns)
		return false;
	drop_entry(c, oldest);
	c->stats.evicted++;
	return true;
}

bool object_cache_make_room(struct fr_object_cache *c, uint64_t bytes)
{
	const uint64_t most = FR_MAX(c->config.bytes_max / ENTRY_BYTES, 1u);

	if (bytes > c->config.bytes_max)
		return false;
	while (c->stats.bytes > c->config.bytes_max - bytes || c->n >= most)
		if (!evict_oldest(c))
			return false;
	return true;
}
