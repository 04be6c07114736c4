// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/cgroup.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>

#define KERNFS_HANDLE 0xfe /* the kernel's FILEID_KERNFS: the bytes of the handle are the id of the group */

union handle {
	struct file_handle h;
	uint8_t bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
};

/* Opens the root of the cgroup2 hierarchy. In systemd's hybrid set-up, the root is /sys/fs/cgroup/unified.
   Returns a descriptor; or -ENOENT if cgroup2 is mounted at neither of the two paths. */
static int open_root(const char **ret_path)
{
	static const char *const paths[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(paths); i++) {
		int fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct statfs fs;

		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC) {
			*ret_path = paths[i];
			return fd;
		}
		fr_closep(&fd);
	}
	return -ENOENT;
}

int fr_cgroup_id(const char *path, uint64_t *ret)
{
	union handle u = {.h.handle_bytes = sizeof(uint64_t)};
	const char *root_path;
	_cleanup_close_ int root = open_root(&root_path), fd = -1;
	int mount;

	if (root < 0)
		return root;
	path += strspn(path, "/");
	fd = openat(root, *path ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || name_to_handle_at(fd, "", &u.h, &mount, AT_EMPTY_PATH) < 0)
		return -errno;
	if (u.h.handle_type != KERNFS_HANDLE || u.h.handle_bytes != sizeof(uint64_t))
		return -ENOENT;
	memcpy(ret, u.bytes + sizeof(struct file_handle), sizeof(*ret));
	return 0;
}

static bool find_path(uint64_t id, char ret[static FR_CAUSE_CGROUP_SIZE])
{
	union handle u = {.h.handle_bytes = sizeof(id), .h.handle_type = KERNFS_HANDLE};
	const char *root_path;
	_cleanup_close_ int root = open_root(&root_path), fd = -1;
	char link[64], path[PATH_MAX];
	ssize_t n;
	size_t len;

	if (root < 0)
		return false;
	memcpy(u.bytes + sizeof(struct file_handle), &id, sizeof(id));
	fd = open_by_handle_at(root, &u.h, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	len = strlen(root_path);
	if (n < (ssize_t)len || memcmp(path, root_path, len) != 0)
		return false;
	path[n] = '\0';
	snprintf(ret, FR_CAUSE_CGROUP_SIZE, "%.*s", FR_CAUSE_CGROUP_SIZE - 1, path[len] ? path + len : "/");
	return true;
}

const char *fr_cgroup_path(struct fr_cgroup_cache *cache, uint64_t id)
{
	size_t at = id % FR_ARRAY_SIZE(cache->entry);

	if (!id)
		return NULL;
	if (cache->entry[at].id != id) {
		char path[FR_CAUSE_CGROUP_SIZE];

		if (!find_path(id, path))
			return NULL;
		cache->entry[at].id = id;
		memcpy(cache->entry[at].path, path, sizeof(path));
	}
	return cache->entry[at].path;
}
