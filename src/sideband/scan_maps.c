// SPDX-License-Identifier: GPL-2.0-or-later
/* The executable maps of one process. */
#include "sideband/scan_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

/* A line of /proc/PID/maps, proc_pid_maps(5). */
struct map {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	uint32_t prot, flags; /* PROT_…, MAP_SHARED or MAP_PRIVATE */
	const char *name;     /* inside the line */
};

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* A file name can contain any character. The kernel writes a newline as \012 and escapes nothing else. */
static void unescape(char *name)
{
	char *out = name;

	while (*name) {
		const bool newline = has_prefix(name, "\\012");

		*out++ = newline ? '\n' : *name;
		name += newline ? 4 : 1;
	}
	*out = '\0';
}

/* "7f0000001000-7f0000003000 r-xp 00002000 fd:1f 123456    /bin/a". RET points into LINE. */
static bool parse_map(char *line, struct map *ret)
{
	char perms[5];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &ret->start,
		    &ret->end, perms, &ret->pgoff, &ret->maj, &ret->min, &ret->ino, &at) != 7 ||
		at == 0 || strlen(perms) != 4 || ret->end <= ret->start)
		return false;
	ret->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
		    (perms[2] == 'x' ? PROT_EXEC : 0);
	ret->flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	ret->name = line + at;
	unescape(line + at);
	return true;
}

/* Reads the build-id of the file of M. The file is opened by /proc/PID/map_files if that is permitted, else
   by its name in the root directory of the process. Returns the same values as fr_build_id_at(); or
   -ENAMETOOLONG. */
static int read_build_id(struct scan *s, int pid_fd, const struct map *m, uint8_t *ret)
{
	char path[sizeof("root") + FR_EMIT_NAME_MAX + 1];
	int r;

	if (!s->no_map_files) {
		snprintf(path, sizeof(path), "map_files/%llx-%llx", (unsigned long long)m->start,
			(unsigned long long)m->end);
		r = fr_build_id_at(
			s->build_ids, pid_fd, path, true, &(struct fr_file_id){.ino = m->ino}, ret);
		if (r != -EPERM && r != -EACCES)
			return r;
		s->no_map_files = true;
	}
	if ((size_t)snprintf(path, sizeof(path), "root%s", m->name) >= sizeof(path))
		return -ENAMETOOLONG;
	return fr_build_id_at(s->build_ids, pid_fd, path, false, &(struct fr_file_id){.ino = m->ino}, ret);
}

static void describe_file(struct scan *s, int pid_fd, const struct map *m, struct fr_backing *ret)
{
	uint8_t id[FR_BUILD_ID_MAX];
	int r = m->ino && m->name[0] == '/' ? read_build_id(s, pid_fd, m, id) : 0;

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

/* If M is memory without a file, gives M the name that the kernel uses for such memory in MMAP2 records. */
static void name_anonymous(struct map *m)
{
	bool huge = has_prefix(m->name, "/anon_hugepage");

	if (m->name[0] && !huge && !has_prefix(m->name, "[anon:") && !has_prefix(m->name, "[anon_shmem:"))
		return;
	if (huge)
		m->flags |= MAP_HUGETLB;
	m->name = "//anon";
}

static int put_map(struct scan *s, pid_t pid, int pid_fd, struct map *m)
{
	struct fr_map_range range;
	struct fr_backing backing;

	/* The kernel sends no record for [vsyscall], which belongs to no process. */
	if (!(m->prot & PROT_EXEC) || strcmp(m->name, "[vsyscall]") == 0)
		return 0;
	describe_file(s, pid_fd, m, &backing);
	name_anonymous(m);
	range = (struct fr_map_range){m->start, m->end - m->start, m->pgoff, m->prot, m->flags};
	return scan_put(s, fr_emit_mmap2(&s->emit, pid, &range, &backing, m->name, strlen(m->name)));
}

int scan_maps(struct scan *s, pid_t pid, int pid_fd)
{
	int fd = openat(pid_fd, "maps", O_RDONLY | O_CLOEXEC), r = 0;
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	ssize_t n;

	if (!f) {
		s->unseen.maps += !s->may_trace && (errno == EACCES || errno == EPERM);
		fr_closep(&fd);
		return 0;
	}
	setvbuf(f, s->maps_buffer, _IOFBF, sizeof(s->maps_buffer));
	while (r == 0 && (n = getline(&s->line, &s->line_size, f)) > 0) {
		struct map m;

		if (s->line[n - 1] == '\n')
			s->line[n - 1] = '\0';
		if (parse_map(s->line, &m))
			r = put_map(s, pid, pid_fd, &m);
	}
	return r;
}
