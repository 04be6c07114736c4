// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A dump with code that processes made as they ran has objects in NAME.jit/ beside it, and MMAP2 records that
 * name them by their absolute path. The output gets links to them in a directory of its own, and its records
 * say so. The objects' names tell of their content, so two dumps may bring the same one.
 */

#include "merge/jit.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define OBJECT "jitted-"
#define COPY_BYTES (32u << 10)

static int open_of(const struct fr_input *in)
{
	char path[PATH_MAX];
	int fd, n = snprintf(path, sizeof(path), "%s.jit", in->path);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool fr_input_has_jit(const struct fr_input *in)
{
	_cleanup_close_ int fd = open_of(in);

	return fd >= 0;
}

static bool is_object(const struct dirent *e)
{
	return strncmp(e->d_name, OBJECT, strlen(OBJECT)) == 0;
}

/* By read and write: copy_file_range() does not go from one kind of file system to another. */
static int copy_bytes(int from, int to)
{
	uint8_t block[COPY_BYTES];
	off_t at = 0;

	for (;;) {
		ssize_t n = fr_pread_all(from, block, sizeof(block), at);
		int r = n > 0 ? fr_write_all(to, block, (size_t)n) : (int)n;

		if (n <= 0 || r < 0)
			return r;
		at += n;
	}
}

/* On another file system a link cannot be made. */
static int copy_object(int from, int to, const char *name)
{
	_cleanup_close_ int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_close_ int out = -1;
	char tmp[NAME_MAX + 1];
	struct stat st;
	int r;

	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	out = fr_tmp_create(to, name, 0640, tmp, sizeof(tmp));
	if (out < 0)
		return out;
	r = copy_bytes(in, out);
	if (r == 0)
		r = fsync(out) < 0 ? -errno : fr_tmp_publish(to, tmp, name);
	if (r < 0)
		(void)unlinkat(to, tmp, 0);
	return r == -EEXIST ? 0 : FR_MIN(r, 0); /* the output's directory is what counts */
}

static int link_objects(int from, int to)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(from, ".");
	const struct dirent *e;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		int r = 0;

		if (!is_object(e) || linkat(from, e->d_name, to, e->d_name, 0) == 0 || errno == EEXIST)
			continue;
		if (errno == EXDEV || errno == EPERM || errno == EMLINK)
			r = copy_object(from, to, e->d_name);
		else
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

int fr_jit_take(const struct fr_inputs *inputs, int dirfd, const char *name)
{
	_cleanup_close_ int to = -1;
	char directory[NAME_MAX + 8];
	int r = 0;

	snprintf(directory, sizeof(directory), "%s.jit", name);
	for (size_t i = 0; i < inputs->n && r == 0; i++) {
		_cleanup_close_ int from = inputs->v[i].has_jit ? open_of(&inputs->v[i]) : -1;

		if (from < 0)
			continue;
		if (to < 0 && mkdirat(dirfd, directory, 0750) < 0 && errno != EEXIST)
			return -errno;
		if (to < 0)
			to = openat(dirfd, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = to < 0 ? -errno : link_objects(from, to);
	}
	if (r == 0 && to >= 0 && fsync(to) < 0)
		r = -errno;
	return r;
}

void fr_jit_remove(const struct fr_input *in)
{
	_cleanup_close_ int fd = in->has_jit ? open_of(in) : -1;
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fr_opendir_at(fd, ".");
	char path[PATH_MAX + 8];
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (is_object(e))
			(void)unlinkat(fd, e->d_name, 0);
	snprintf(path, sizeof(path), "%s.jit", in->path);
	if (fd >= 0)
		(void)rmdir(path);
}

/* The object's own name, in a path that ends in "/NAME.jit/jitted-…" with the input's NAME; else NULL. */
static const char *object_in(const struct fr_input *in, const char *path)
{
	const char *slash = strrchr(in->path, '/'), *base = slash ? slash + 1 : in->path;
	const char *object = strrchr(path, '/');
	size_t len = strlen(base);

	if (!object || strncmp(object + 1, OBJECT, strlen(OBJECT)) != 0)
		return NULL;
	if ((size_t)(object - path) < len + 5 || memcmp(object - 4, ".jit", 4) != 0 ||
		memcmp(object - 4 - len, base, len) != 0 || object[-5 - (ptrdiff_t)len] != '/')
		return NULL;
	return object + 1;
}

int fr_jit_rename(const struct fr_input *in, const char *directory, const struct perf_event_header *record,
	struct fr_buf *to, const struct perf_event_header **ret)
{
	const struct fr_record_mmap2 *m = (const void *)record;
	const size_t fixed = sizeof(*m), tail = sizeof(struct fr_sample_id);
	struct perf_event_header *h;
	const char *object;
	size_t name;

	*ret = record;
	if (record->type != PERF_RECORD_MMAP2 || record->size < fixed + tail + 8 ||
		!memchr(m->filename, '\0', record->size - fixed - tail))
		return 0;
	object = object_in(in, m->filename);
	if (!object)
		return 0;
	name = strlen(directory) + 1 + strlen(object) + 1;
	if (name > PATH_MAX)
		return 0;
	to->len = 0;
	if (fr_buf_reserve(to, fixed + FR_ALIGN_UP(name, 8) + tail) < 0)
		return -ENOMEM;
	(void)fr_buf_append(to, record, fixed);
	(void)fr_buf_append(to, directory, strlen(directory));
	(void)fr_buf_append(to, "/", 1);
	(void)fr_buf_append(to, object, strlen(object) + 1);
	(void)fr_buf_append_zero(to, FR_ALIGN_UP(name, 8) - name);
	(void)fr_buf_append(to, (const char *)record + record->size - tail, tail);
	h = (void *)to->data;
	h->size = (uint16_t)to->len;
	*ret = h;
	return 0;
}
