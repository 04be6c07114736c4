// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/jit.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define OBJECT "jitted-"
#define COPY_BYTES (1u << 30)

static int open_directory(const struct fr_input *in)
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
	_cleanup_close_ int fd = open_directory(in);

	return fd >= 0;
}

static bool is_object(const struct dirent *e)
{
	return strncmp(e->d_name, OBJECT, strlen(OBJECT)) == 0;
}

/* Copies the content of a file. This uses sendfile(), because copy_file_range() does not copy between file
   systems of different types. */
static int copy_bytes(int from, int to)
{
	ssize_t n;

	do
		n = sendfile(to, from, NULL, COPY_BYTES);
	while (n > 0);
	return n < 0 ? -errno : 0;
}

/* Copies an object that cannot be linked, for example because the directories are on different file
   systems. */
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
	/* If R is positive, only the sync of the directory failed. The caller syncs the directory again. */
	return r == -EEXIST ? 0 : FR_MIN(r, 0);
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

int fr_jit_link_objects(const struct fr_inputs *inputs, int dirfd, const char *name)
{
	_cleanup_close_ int to = -1;
	char directory[NAME_MAX + 8];
	int r = 0;

	snprintf(directory, sizeof(directory), "%s.jit", name);
	for (size_t i = 0; i < inputs->n && r == 0; i++) {
		_cleanup_close_ int from = inputs->v[i].has_jit ? open_directory(&inputs->v[i]) : -1;

		if (from < 0)
			continue;
		if (to < 0)
			to = fr_directory_make(dirfd, directory, (gid_t)-1);
		r = to < 0 ? to : link_objects(from, to);
	}
	if (r == 0 && to >= 0 && fsync(to) < 0)
		r = -errno;
	return r;
}

void fr_jit_remove_objects(const struct fr_input *in)
{
	_cleanup_close_ int fd = in->has_jit ? open_directory(in) : -1;
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

/* If PATH ends with "/NAME.jit/jitted-…", where NAME is the name of the input, returns the name "jitted-…" of
   the object. Otherwise returns NULL. */
static const char *find_object_name(const struct fr_input *in, const char *path)
{
	const char *base = basename(in->path), *object = strrchr(path, '/');
	size_t len = strlen(base);

	if (!object || strncmp(object + 1, OBJECT, strlen(OBJECT)) != 0)
		return NULL;
	if ((size_t)(object - path) < len + 5 || memcmp(object - 4, ".jit", 4) != 0 ||
		memcmp(object - 4 - len, base, len) != 0 || object[-5 - (ptrdiff_t)len] != '/')
		return NULL;
	return object + 1;
}

int fr_jit_rewrite_path(const struct fr_input *in, const char *directory,
	const struct perf_event_header *record, struct fr_buf *buffer, const struct perf_event_header **ret)
{
	const struct fr_record_mmap2 *m = (const void *)record;
	const size_t fixed = sizeof(*m), tail = sizeof(struct fr_sample_id);
	struct perf_event_header *h;
	const char *object;
	size_t len, padded;

	*ret = record;
	if (record->type != PERF_RECORD_MMAP2 || record->size < fixed + tail + 8 ||
		!memchr(m->filename, '\0', record->size - fixed - tail))
		return 0;
	object = find_object_name(in, m->filename);
	len = object ? strlen(directory) + 1 + strlen(object) + 1 : SIZE_MAX;
	if (len > PATH_MAX)
		return 0;
	padded = FR_ALIGN_UP(len, 8);
	buffer->len = 0;
	if (fr_buf_append_zero(buffer, fixed + padded + tail) < 0)
		return -ENOMEM;
	memcpy(buffer->data, record, fixed);
	snprintf((char *)buffer->data + fixed, padded, "%s/%s", directory, object);
	memcpy(buffer->data + fixed + padded, (const char *)record + record->size - tail, tail);
	h = (void *)buffer->data;
	h->size = (uint16_t)buffer->len;
	*ret = h;
	return 0;
}
