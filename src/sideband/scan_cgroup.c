// SPDX-License-Identifier: GPL-2.0-or-later
/* The cgroup2 hierarchy: the id of each cgroup, as samples carry it, and its path. */
#include "sideband/scan_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 64
#define CGROUPS_MAX 16384

struct walk {
	struct scan *scan;
	char path[PATH_MAX]; /* from the mount: "/", "/a/b" */
	size_t len;
	unsigned n;
};

/* A cgroup's id is its file handle; where the kernel gives none, its inode is the same number. */
static int cgroup_id(int fd, uint64_t *ret)
{
	union {
		struct file_handle h;
		uint8_t room[sizeof(struct file_handle) + sizeof(uint64_t)];
	} u = {.h.handle_bytes = sizeof(uint64_t)};
	struct stat st;
	int mount_id;

	if (name_to_handle_at(fd, "", &u.h, &mount_id, AT_EMPTY_PATH) == 0 &&
		u.h.handle_bytes == sizeof(uint64_t)) {
		memcpy(ret, u.h.f_handle, sizeof(*ret));
		return 0;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = st.st_ino;
	return 0;
}

static int walk_children(struct walk *w, int *fd, int depth);

static int visit(struct walk *w, int parent, const char *name, int depth)
{
	_cleanup_close_ int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t id = 0;
	int r;

	if (fd < 0 || cgroup_id(fd, &id) < 0)
		return 0; /* it went meanwhile */
	if (w->n++ >= CGROUPS_MAX)
		return 0;
	r = scan_put(
		w->scan, fr_emit_cgroup(&w->scan->emit, id, w->len ? w->path : "/", w->len ? w->len : 1));
	return r < 0 || depth >= DEPTH_MAX ? r : walk_children(w, &fd, depth);
}

static int walk_children(struct walk *w, int *fd, int depth)
{
	_cleanup_closedir_ DIR *dir = fdopendir(*fd);
	size_t len = w->len;
	struct dirent *e;
	int r = 0;

	if (!dir)
		return -errno;
	*fd = -1;
	while (r == 0 && (e = readdir(dir))) {
		size_t n = strlen(e->d_name);

		if (e->d_type != DT_DIR || e->d_name[0] == '.' || len + 1 + n >= sizeof(w->path))
			continue;
		w->path[len] = '/';
		memcpy(w->path + len + 1, e->d_name, n + 1);
		w->len = len + 1 + n;
		r = visit(w, dirfd(dir), e->d_name, depth + 1);
	}
	w->len = len;
	w->path[len] = '\0';
	return r;
}

int scan_cgroups(struct scan *s, const char *root)
{
	_cleanup_free_ struct walk *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->scan = s;
	return visit(w, AT_FDCWD, root, 0);
}
