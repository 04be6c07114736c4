// SPDX-License-Identifier: GPL-2.0-or-later
/* The maps of one process: the executable ones, and those of files where data is wanted too. */
#include "sideband/procmaps.h"
#include "sideband/scan_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static bool name_is(const struct fr_procmap *m, const char *name)
{
	return m->name_len == strlen(name) && !memcmp(m->name, name, m->name_len);
}

static bool name_begins(const struct fr_procmap *m, const char *prefix)
{
	return m->name_len >= strlen(prefix) && !memcmp(m->name, prefix, strlen(prefix));
}

/* The file itself where we may open it by its map, else whatever has its name and inode in the process's view
   of the file system. */
static int read_build_id(struct scan *s, int pid_fd, const struct fr_procmap *m, uint8_t *ret)
{
	char path[sizeof("root") + FR_EMIT_NAME_MAX + 1];
	int r;

	if (!s->no_map_files) {
		snprintf(path, sizeof(path), "map_files/%llx-%llx", (unsigned long long)m->start,
			(unsigned long long)m->end);
		r = fr_build_id_at(s->build_ids, pid_fd, path, 1, &(struct fr_file_id){.ino = m->ino}, ret);
		if (r != -EPERM && r != -EACCES)
			return r;
		s->no_map_files = true;
	}
	if (m->name_len > FR_EMIT_NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(path, sizeof(path), "root%.*s", (int)m->name_len, m->name);
	return fr_build_id_at(s->build_ids, pid_fd, path, 0, &(struct fr_file_id){.ino = m->ino}, ret);
}

static void describe_file(struct scan *s, int pid_fd, const struct fr_procmap *m, struct fr_backing *ret)
{
	uint8_t id[FR_BUILD_ID_MAX];
	int r = m->ino && name_begins(m, "/") ? read_build_id(s, pid_fd, m, id) : 0;

	*ret = (struct fr_backing){.has_build_id = r > 0};
	if (r > 0) {
		ret->build_id.size = (uint8_t)r;
		memcpy(ret->build_id.bytes, id, (size_t)r);
	} else {
		ret->file.maj = m->maj;
		ret->file.min = m->min;
		ret->file.ino = m->ino;
	}
}

/* Memory without a file goes by the name that the kernel's records have for it. */
static void name_anonymous(struct fr_procmap *m)
{
	static char anon[] = "//anon";
	bool huge = name_begins(m, "/anon_hugepage");

	if (m->name_len && !huge && !name_begins(m, "[anon:") && !name_begins(m, "[anon_shmem:"))
		return;
	if (huge)
		m->flags |= MAP_HUGETLB;
	m->name = anon;
	m->name_len = sizeof(anon) - 1;
}

static int put_map(struct scan *s, pid_t pid, int pid_fd, struct fr_procmap *m)
{
	struct fr_map_range range;
	struct fr_backing backing;

	const bool wanted = m->prot & PROT_EXEC || (s->data_maps && m->prot & PROT_READ && m->ino);

	/* The kernel sends no record for [vsyscall] either: it is not the process's. */
	if (!wanted || name_is(m, "[vsyscall]"))
		return 0;
	describe_file(s, pid_fd, m, &backing);
	name_anonymous(m);
	range = (struct fr_map_range){m->start, m->end - m->start, m->pgoff, m->prot, m->flags};
	return scan_put(s, fr_emit_mmap2(&s->emit, pid, &range, &backing, m->name, m->name_len));
}

/* Whole lines of S->line, FILL bytes of it; what is left over of the last one moves to the front. */
static int put_lines(struct scan *s, pid_t pid, int pid_fd, size_t *fill, bool *skip)
{
	char *at = s->line, *end = s->line + *fill, *newline;
	int r = 0;

	while (r == 0 && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		struct fr_procmap m;

		if (!*skip && fr_procmap_parse(at, (size_t)(newline - at), &m) == 0)
			r = put_map(s, pid, pid_fd, &m);
		*skip = false;
		at = newline + 1;
	}
	*fill = (size_t)(end - at);
	memmove(s->line, at, *fill);
	if (*fill == FR_PROCMAPS_LINE_MAX) {
		/* Longer than a line can be: not one of ours to read. */
		*fill = 0;
		*skip = true;
	}
	return r;
}

int scan_maps(struct scan *s, pid_t pid, int pid_fd)
{
	_cleanup_close_ int fd = openat(pid_fd, "maps", O_RDONLY | O_CLOEXEC);
	size_t fill = 0;
	bool skip = false;

	if (fd < 0) {
		s->unseen.maps += !s->may_trace && (errno == EACCES || errno == EPERM);
		return 0;
	}
	for (;;) {
		ssize_t n = read(fd, s->line + fill, FR_PROCMAPS_LINE_MAX - fill);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		fill += (size_t)n;
		r = put_lines(s, pid, pid_fd, &fill, &skip);
		if (r < 0)
			return r;
	}
}
