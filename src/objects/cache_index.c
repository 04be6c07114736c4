// SPDX-License-Identifier: GPL-2.0-or-later
#include "objects/cache_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* What an entry takes of the disk at least. */
#define ENTRY_BYTES 4096u
#define KEYS ".build-id"
#define COPY_BYTES (256u << 10)

int object_cache_copy_slowly(int from, int to, uint64_t size)
{
	_cleanup_free_ char *block = malloc(COPY_BYTES);

	if (!block)
		return -ENOMEM;
	for (uint64_t at = 0; at < size;) {
		ssize_t n = fr_pread_all(from, block, FR_MIN(size - at, (uint64_t)COPY_BYTES), (off_t)at);
		int r;

		if (n <= 0)
			return n < 0 ? (int)n : -ESTALE;
		r = fr_pwrite_all(to, block, (size_t)n, (off_t)at);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return 0;
}

/* Where ".build-id/XX/REST" leads, below the cache; false for what is not ours. */
static bool target_of(const struct fr_object_cache *c, const char *id, char ret[static PATH_MAX])
{
	char key[sizeof(KEYS) + sizeof(((struct object_entry *)0)->id) + 4], link[PATH_MAX];
	ssize_t n;

	snprintf(key, sizeof(key), KEYS "/%.2s/%s", id, id + 2);
	n = readlinkat(c->fd, key, link, sizeof(link) - 1);
	if (n <= 6)
		return false;
	link[n] = '\0';
	if (strncmp(link, "../../", 6) != 0 || strstr(link + 6, "..") || link[6] == '/')
		return false;
	strcpy(ret, link + 6);
	return true;
}

static int open_target(const struct fr_object_cache *c, const char *path)
{
	return openat(c->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int object_cache_remember(struct fr_object_cache *c, const char *id, uint64_t bytes, uid_t owner)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 64;
		struct object_entry *v = reallocarray(c->entries, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		c->entries = v;
		c->cap = cap;
	}
	c->entries[c->n] =
		(struct object_entry){.bytes = bytes, .used_ns = fr_now_ns(CLOCK_REALTIME), .owner = owner};
	snprintf(c->entries[c->n].id, sizeof(c->entries[c->n].id), "%s", id);
	c->n++;
	c->stats.objects = c->n;
	c->stats.bytes += bytes;
	return 0;
}

/* The entry's size and time of use, from its directory. */
static int scan_entry(struct fr_object_cache *c, const char *id)
{
	_cleanup_closedir_ DIR *dir = NULL;
	char path[PATH_MAX];
	const struct dirent *e;
	struct stat st;
	uint64_t bytes = 0;
	int r;

	if (!target_of(c, id, path))
		return 0;
	dir = fr_opendir_at(c->fd, path);
	if (!dir || fstat(dirfd(dir), &st) < 0)
		return 0;
	r = object_cache_remember(c, id, 0, 0);
	if (r < 0)
		return r;
	c->entries[c->n - 1].used_ns =
		(uint64_t)st.st_mtim.tv_sec * FR_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	while ((e = readdir(dir))) {
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
		if (strcmp(e->d_name, OBJECT_CONTESTED) == 0)
			c->entries[c->n - 1].contested = true;
		if (strncmp(e->d_name, OBJECT_OWNER_PREFIX, strlen(OBJECT_OWNER_PREFIX)) == 0)
			c->entries[c->n - 1].owner =
				(uid_t)strtoul(e->d_name + strlen(OBJECT_OWNER_PREFIX), NULL, 10);
	}
	c->entries[c->n - 1].bytes = bytes;
	c->stats.bytes += bytes;
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

/* Copies that were under way when we were killed. */
static void remove_temporary(const struct fr_object_cache *c)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(c->fd, ".");
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, ".object.", 8) == 0)
			(void)unlinkat(c->fd, e->d_name, 0);
}

int object_cache_scan(struct fr_object_cache *c)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(c->fd, KEYS);
	const struct dirent *e;
	int r = 0;

	remove_temporary(c);
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

	if (!target_of(c, id, path ? path : target))
		return -ENOENT;
	fd = open_target(c, path ? path : target);
	return fd < 0 ? -errno : fd;
}

const struct object_entry *object_cache_touch(struct fr_object_cache *c, const char *id)
{
	for (size_t i = 0; i < c->n; i++) {
		_cleanup_close_ int fd = -1;

		if (strcmp(c->entries[i].id, id) != 0)
			continue;
		fd = object_cache_open_entry(c, id, NULL);
		if (fd < 0)
			return NULL;
		(void)futimens(fd, NULL);
		c->entries[i].used_ns = fr_now_ns(CLOCK_REALTIME);
		return &c->entries[i];
	}
	return NULL;
}

/* The entry's files and whatever directories are empty then. */
static void remove_files(const struct fr_object_cache *c, const char *id)
{
	char path[PATH_MAX], key[sizeof(KEYS) + sizeof(((struct object_entry *)0)->id) + 4];
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *e;

	snprintf(key, sizeof(key), KEYS "/%.2s/%s", id, id + 2);
	if (target_of(c, id, path)) {
		dir = fr_opendir_at(c->fd, path);
		/* First, as what else is there says whether it may be used. */
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

static void drop(struct fr_object_cache *c, size_t i)
{
	remove_files(c, c->entries[i].id);
	c->stats.bytes -= c->entries[i].bytes;
	c->entries[i] = c->entries[--c->n];
	c->stats.objects = c->n;
}

void object_cache_drop(struct fr_object_cache *c, const char *id)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->entries[i].id, id) == 0) {
			drop(c, i);
			return;
		}
}

static bool evict_oldest(struct fr_object_cache *c)
{
	size_t oldest = 0;

	for (size_t i = 1; i < c->n; i++)
		if (c->entries[i].used_ns < c->entries[oldest].used_ns)
			oldest = i;
	if (c->n == 0 || c->entries[oldest].used_ns >= c->begin_ns)
		return false;
	drop(c, oldest);
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
